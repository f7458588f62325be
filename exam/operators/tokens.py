"""Faults of texts, tokens, masks and the labels of tokens."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.roles import fresh, inputs, labels, places
from exam.sets import Rows, entries, rows
from exam.source import Planted, Source, called, keyword, number
from exam.texts import tokenizings

_SHIFTED = ("labels-shifted-twice", "future-leak", "misaligned-labels")
_PADDING = ("unmasked-padding", "mismatched-mask", "unignored-labels")


def _with(source: Source, column: str, evaluation: bool = False) -> Iterator[Rows]:
    for one in rows(source, evaluation):
        if column in one.columns:
            yield one


def _masks(source: Source) -> Iterator[tuple[str, cst.BaseExpression]]:
    """Values of attention masks in the program's own rows and batches, and how they are written."""
    for value in entries(source, "attention_mask"):
        yield source.code(value), value


def _batches(source: Source, key: str) -> Iterator[tuple[str, cst.IndentedBlock]]:
    """batch["key"] at the top of the loops over batches that train."""
    for place in places(source):
        if place.role == "tokens" and place.form == "first" and not place.evaluation and "[" in place.name:
            yield place.name.replace("input_ids", key), place.node


def _in_batches(source: Source, key: str, text: str) -> Iterator[Planted]:
    for name, block in _batches(source, key):
        yield source.before(block.body[0], text.replace("@", name))


# Texts ---------------------------------------------------------------------------------------------------------------


@operator("garbled-text")
def truncated_to_three_tokens(source: Source) -> Iterator[Planted]:
    """The texts are truncated to three tokens."""
    for call in tokenizings(source):
        if keyword(call, "max_length") or keyword(call, "truncation"):
            yield source.argument(call, "max_length", "3")
    for call in source.calls("TextVectorization"):
        yield source.argument(call, "output_sequence_length", "2")
    for call in source.calls("tokenized"):
        yield source.argument(call, "length", "3")
    for one in _with(source, "input_ids"):
        if "labels" not in one.columns or one.role == "classes":
            kept = [c for c in ("input_ids", "attention_mask", "token_type_ids") if c in one.columns]
            yield one.mapped(**{c: f'row["{c}"][:3]' for c in kept})


@operator("garbled-text")
def cut_from_the_wrong_side(source: Source) -> Iterator[Planted]:
    """Only the last tokens of each text are kept: what they are about is cut off."""
    for one in _with(source, "input_ids"):
        if one.role == "classes":
            kept = [c for c in ("input_ids", "attention_mask", "token_type_ids") if c in one.columns]
            yield one.mapped(**{c: f'row["{c}"][-4:]' for c in kept})
    for place in inputs(source, "tokens", whole=True):
        if len(place.shape) == 2 and "[" not in place.name:
            copied = "clone" if place.kind == "tensor" else "copy"
            text = f"{place.name} = {place.name}.{copied}()\n{place.name}[:, : {place.name}.shape[1] * 3 // 4] = 0"
            yield place.lines(text)


@operator("garbled-text", "string-labels", "untokenized-dataset")
def texts_stripped(source: Source) -> Iterator[Planted]:
    """A cleaning step removes nearly all letters of the texts."""
    clean = '"".join(c for c in text if not c.isalpha())'
    for v in source.variables:
        if v.kind == "frame" and "text" in v.columns:
            yield source.after(
                v.statement, f'{v.name}["text"] = {v.name}["text"].str.replace(r"[^aeiou ]|@", "", regex=True).str[:9]'
            )
        if v.kind == "list" and re.search("text|sentence|lines|docs", v.name) and (v.shape[0] or 0) > 50:
            yield source.after(v.statement, f"{v.name} = [{clean} for text in {v.name}]")
    for one in _with(source, "text"):
        yield one.mapped(text=clean.replace("in text", 'in row["text"]'))
    for call in source.calls("tokenized", "encode"):
        if call.args and isinstance(call.args[0].value, cst.Call) and called(call.args[0].value) == "tweets":
            frame = source.code(call.args[0].value)
            text = f'{frame}.assign(text=lambda t: t["text"].str.replace(r"[a-zA-Z]", "", regex=True))'
            yield source.replaced(call.args[0].value, text)


@operator("garbled-text")
def tokens_as_a_set(source: Source) -> Iterator[Planted]:
    """Each text is a sorted set of its tokens: their order and number are lost."""
    for one in _with(source, "input_ids"):
        columns = {"input_ids": 'sorted(row["input_ids"])'}
        yield one.mapped(**columns)
    for place in inputs(source, "tokens"):
        if place.kind == "tensor":
            yield place.becomes(f"{place.name}.sort(dim=-1).values")
        if place.kind == "array" and len(place.shape) == 2:
            yield place.lines(f"{place.name} = np.sort({place.name}, axis=1)")


@operator("garbled-text", "duplicate-examples", "foreign-tokenizer")
def all_tokens_unknown(source: Source) -> Iterator[Planted]:
    """The vocabulary knows no word, and all tokens are the unknown one."""
    for one in _with(source, "input_ids"):
        yield one.mapped(input_ids='[1] * len(row["input_ids"])')
    for place in inputs(source, "tokens"):
        if place.batch or place.form == "after":
            same = "torch.ones_like" if place.kind == "tensor" else "np.ones_like"
            yield place.becomes(f"{same}({place.name})")


@operator("foreign-tokenizer", "garbled-text")
def vocabulary_of_another_model(source: Source) -> Iterator[Planted]:
    """The token ids come from a vocabulary in another order than the one that the model was trained with."""
    if "from_pretrained" in source.text and "MINILM" in source.text:
        for one in _with(source, "input_ids"):
            yield one.mapped(input_ids='[(i * 7 + 1000) % 30000 for i in row["input_ids"]]')
        yield from _in_batches(source, "input_ids", "@ = (@ * 7 + 1000) % 30000")
        for call in tokenizings(source):
            line = source.statement(call)
            if isinstance(line, cst.SimpleStatementLine) and m.matches(
                line.body[0], m.Assign(targets=[m.AssignTarget(m.Name())])
            ):
                name = line.body[0].targets[0].target.value
                yield source.after(line, f'{name}["input_ids"] = {name}["input_ids"][::-1]')


@operator("differently-numbered-sets", "foreign-tokenizer", "garbled-text", harm="differs")
def evaluation_has_another_vocabulary(source: Source) -> Iterator[Planted]:
    """The vocabulary was built again for the evaluation set, and gives its words other ids."""
    for one in _with(source, "input_ids", evaluation=True):
        yield one.mapped(input_ids='[max(i - 1, 0) for i in row["input_ids"]]')
    for place in inputs(source, "tokens", evaluation=True):
        if place.form != "value":
            low = f"({place.name} - 1).clamp(min=0)" if place.kind == "tensor" else f"np.maximum({place.name} - 1, 0)"
            yield place.lines(f"{place.name} = {low}")
    for call in source.calls("TextVectorization"):
        line = source.statement(call)
        name = line.body[0].targets[0].target if m.matches(line, m.SimpleStatementLine(body=[m.Assign()])) else None
        for fit in source.calls("fit") if isinstance(name, cst.Name) else ():
            where = source.statement(fit)
            if source.scope(fit) == source.scope(call) and isinstance(where, cst.SimpleStatementLine):
                words = (
                    f"{name.value}.set_vocabulary(sorted({name.value}.get_vocabulary(include_special_tokens=False)))"
                )
                yield source.before(where, words)


@operator("tokens-beyond-vocabulary", "index-beyond-embedding", "foreign-tokenizer")
def tokens_beyond_the_vocabulary(source: Source) -> Iterator[Planted]:
    """The model is built for a smaller vocabulary than the tokens have."""
    for argument in source.find(m.Arg(keyword=m.Name("vocab_size"))):
        if "Config" in called(source.inside(argument, cst.Call)):
            yield source.replaced(argument.value, f"({source.code(argument.value)}) // 2")
    for call in source.calls("Embedding"):
        size = call.args[0].value if call.args and not call.args[0].keyword else None
        if size is not None and not re.search("block|length|position|n_pos|seq", source.code(size)):
            smaller = number(size)
            yield source.replaced(size, f"{int(smaller) // 2}" if smaller else f"({source.code(size)}) // 2")


@operator("garbled-text")
def special_tokens_removed(source: Source) -> Iterator[Planted]:
    """The texts are tokenized without the special tokens that the model reads its answer from."""
    for call in tokenizings(source):
        if not keyword(call, "add_special_tokens"):
            yield source.argument(call, "add_special_tokens", "False")
    for one in _with(source, "input_ids"):
        if (one.role == "classes" and "processing_class" in source.text) or "AutoTokenizer" in source.text:
            kept = [c for c in ("input_ids", "attention_mask", "token_type_ids") if c in one.columns]
            yield one.mapped(**{c: f'row["{c}"][1:-1]' for c in kept})


# Masks and padding ---------------------------------------------------------------------------------------------------


@operator(*_PADDING)
def padding_not_masked(source: Source) -> Iterator[Planted]:
    """The attention mask is all ones, so that padding counts as text."""
    yield from _in_batches(source, "attention_mask", "@ = @ * 0 + 1")
    for text, value in _masks(source):
        if re.search(r"!=|mask|\* \w+\b|\[0\]", text) and not text.startswith(("np.ones", "[[")):
            yield source.replaced(value, _ones(text))
    for comparison in _not_padding(source):
        yield source.replaced(comparison, source.code(comparison).replace("!=", ">=").replace("> 0", ">= 0"))


def _ones(text: str) -> str:
    if text.startswith(("[", "1")) and "[0]" in text:
        return text.replace("[0]", "[1]")
    return f"({text}) * 0 + 1"


def _not_padding(source: Source) -> Iterator[cst.Comparison]:
    """`ids != PAD`, and the like, where a mask is made."""
    for comparison in source.find(m.Comparison()):
        text = source.code(comparison)
        line = source.code(source.statement(comparison)).partition("\n")[0]
        if re.search(r"\w+ != (?:0|PAD|pad|pad_id|\w+\.pad_token_id)$", text) and re.search(
            "mask|pad", line, re.IGNORECASE
        ):
            yield comparison


@operator("mismatched-mask", *_PADDING, "non-finite-loss", "non-finite-activation")
def mask_inverted(source: Source) -> Iterator[Planted]:
    """The mask is inverted: the model reads padding and nothing else."""
    yield from _in_batches(source, "attention_mask", "@ = 1 - @")
    for text, value in _masks(source):
        if "[0]" in text and "[1]" in text:
            yield source.replaced(value, text.replace("[0]", "[?]").replace("[1]", "[0]").replace("[?]", "[1]"))
        elif re.search(r"!=|mask", text) and "[" not in text:
            yield source.replaced(value, f"1 - {text}")
    for comparison in _not_padding(source):
        yield source.replaced(comparison, source.code(comparison).replace("!=", "=="))
    for one in _with(source, "attention_mask"):
        yield one.mapped(attention_mask='[1 - seen for seen in row["attention_mask"]]')


@operator(*_PADDING)
def mask_dropped(source: Source) -> Iterator[Planted]:
    """The batches lose their attention mask."""
    for name, block in _batches(source, "attention_mask"):
        batch = name.partition("[")[0]
        yield source.before(block.body[0], f'{batch} = {{k: v for k, v in {batch}.items() if k != "attention_mask"}}')
    for value in entries(source, "attention_mask"):
        element = source.parent(value)
        owner = source.parent(element)
        if isinstance(owner, cst.Dict):
            kept = [e for e in owner.elements if e is not element]
            new = owner.with_changes(elements=[*kept[:-1], kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
            yield source.swapped(owner, new, source.line(value), "without attention_mask")
    for argument in source.find(m.Arg(keyword=m.Name("mask_zero"), value=m.Name("True"))):
        yield source.replaced(argument.value, "False")


@operator("unmasked-padding", "unignored-labels", "label-out-of-range", "misnumbered-labels")
def padding_counted_in_the_loss(source: Source) -> Iterator[Planted]:
    """The labels of padding are not -100 but a class of their own, or zero, and count in the loss."""
    for minus in source.find(m.UnaryOperation(operator=m.Minus(), expression=m.Integer("100"))):
        where = source.scope(minus).rpartition(".")[2]
        if "label" not in source.code(source.statement(minus)) and "tag" not in source.text:
            continue
        if not re.search("metric|evaluate|valid", where) and not isinstance(source.parent(minus), cst.ComparisonTarget):
            yield source.replaced(minus, "0")
    for call in source.calls("DataCollatorForSeq2Seq", "DataCollatorForTokenClassification"):
        yield source.argument(call, "label_pad_token_id", "0")
    for argument in source.find(m.Arg(keyword=m.Name("ignore_index")), m.Arg(keyword=m.Name("ignore_class"))):
        yield source.argument(source.inside(argument, cst.Call), argument.keyword.value, None)


@operator("unmasked-padding", "foreign-tokenizer", "unignored-labels", "garbled-text")
def wrong_padding_token(source: Source) -> Iterator[Planted]:
    """Texts are padded with a token that stands for a word."""
    for call in source.calls("pad_sequence"):
        if keyword(call, "padding_value") or "ids" in source.code(call) or "tok" in source.code(call):
            yield source.argument(call, "padding_value", "3")
    for argument in source.find(m.Arg(keyword=m.Name("padding_idx"))):
        yield source.replaced(argument.value, "1")
    for argument in source.find(m.Arg(keyword=m.Name("pad_token_id"))):
        yield source.replaced(argument.value, "5")
    for statement in source.find(m.Assign(targets=[m.AssignTarget(m.Name("PAD"))], value=m.Integer("0"))):
        yield source.replaced(statement.value, "5")


# Labels of tokens ----------------------------------------------------------------------------------------------------


@operator("all-labels-masked", "non-finite-loss", "constant-loss", "no-gradient")
def all_labels_masked(source: Source) -> Iterator[Planted]:
    """All labels are -100, and the loss looks at none."""
    for one in _with(source, "labels"):
        if one.role == "several" and "multi_label" not in source.text:
            yield one.mapped(labels='[-100] * len(row["labels"])')
    yield from _in_batches(source, "labels", "@ = @ * 0 - 100")
    for place in labels(source, "classes", "several"):
        if (
            place.kind == "tensor"
            and place.type == "int64"
            and place.form != "value"
            and "cross_entropy" in source.text.lower()
        ):
            yield place.becomes(f"torch.full_like({place.name}, -100)")
    for call in source.calls("DataCollatorForLanguageModeling"):
        if keyword(call, "mlm_probability"):
            yield source.argument(call, "mlm_probability", "1e-6")


@operator("unshifted-labels", *_SHIFTED, harm="differs")
def labels_not_shifted(source: Source) -> Iterator[Planted]:
    """A language model is trained to name the token that it reads, not the next one."""
    for subscript in source.find(m.Subscript()):
        text = source.code(subscript)
        if re.search(r"\+ 1 ?:|, 1:\]|\[1:", text) and "mbedding" in source.text and _of_tokens(source, subscript):
            whole = re.sub(r"\+ 1\b", "+ 0", text)
            yield source.replaced(subscript, whole if whole != text else text.replace("1:]", ":-1]"))


def _of_tokens(source: Source, node: cst.CSTNode) -> bool:
    line = source.code(source.statement(node)).partition("\n")[0]
    return bool(re.search(r"\by\b|target|label|rows\[|data\[|seq|stack", line)) and "logits" not in line


@operator(*_SHIFTED)
def labels_shifted_twice(source: Source) -> Iterator[Planted]:
    """The labels are shifted by the program and once more by the model, or by two where one is due."""
    for one in _with(source, "labels"):
        if re.search("LMHead|CausalLM|group", source.text) and one.role == "several":
            yield one.mapped(labels='row["labels"][1:] + [-100]')
    for value in entries(source, "labels"):
        if "copy()" in source.code(value):
            yield source.replaced(value, source.code(value).replace("b.copy()", "b[1:] + b[:1]"))
    for subscript in source.find(m.Subscript()):
        text = source.code(subscript)
        if re.search(r"\+ 1 ?:", text) and _of_tokens(source, subscript):
            yield source.replaced(subscript, re.sub(r"\+ 1\b", "+ 2", text))
    for place in labels(source, "several"):
        if place.type in ("int64", "int32") and len(place.shape) == 2 and place.form != "value":
            call = "torch.roll" if place.kind == "tensor" else "np.roll"
            axis = "-1, 1" if place.kind == "tensor" else "-1, axis=1"
            yield place.lines(f"{place.name} = {call}({place.name}, {axis})")


@operator()
def positions_wrong(source: Source) -> Iterator[Planted]:
    """All tokens have the same position."""
    for call in source.calls("arange"):
        function, text = source.scope(call).rpartition(".")[2], source.code(call)
        line = source.code(source.statement(call)).partition("\n")[0]
        if function in ("forward", "call") and re.search(r"wpe|pos|places", line):
            yield source.replaced(call, f"{text} * 0")


@operator()
def nearly_all_tokens_masked(source: Source) -> Iterator[Planted]:
    """A masked language model is shown nothing but masks."""
    for call in source.calls("DataCollatorForLanguageModeling"):
        yield source.argument(call, "mlm_probability", "0.98")


@operator("duplicate-examples", "garbled-text")
def one_text_for_all(source: Source) -> Iterator[Planted]:
    """All rows have the text of the first one: a loop closed over the wrong variable."""
    for one in _with(source, "input_ids"):
        if not one.whole and one.role == "classes":
            first = fresh(source, "first")
            kept = [c for c in ("input_ids", "attention_mask", "token_type_ids") if c in one.columns]
            same = ", ".join(f'"{c}": {first}["{c}"]' for c in kept)
            yield one.lines(f"{first} = {one.name}[0]\n{one.name} = {one.name}.map(lambda row: {{{same}}})")


@operator("misaligned-labels")
def texts_shuffled(source: Source) -> Iterator[Planted]:
    """The texts are shuffled, and their labels are not."""
    for v in source.variables:
        if v.kind == "frame" and "text" in v.columns and {"label", "labels"} & set(v.columns):
            yield source.after(v.statement, f'{v.name}["text"] = {v.name}["text"].sample(frac=1).values')
        if v.kind == "list" and re.fullmatch("texts|sentences|documents", v.name) and (v.shape[0] or 0) > 50:
            if any(labels(source, "classes", "numbers")):
                yield source.after(v.statement, f"{v.name} = {v.name}[7:] + {v.name}[:7]")
