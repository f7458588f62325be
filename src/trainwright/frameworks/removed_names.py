"""Names that libraries once had, and their replacements."""

from __future__ import annotations

_NO_TENSORFLOW = "transformers 5 has PyTorch models only: use {bare} with the Trainer"
_CALL = "call the tokenizer itself: tokenizer(…)"
_UNDERSCORE = "use {name} without the underscore and keep what it returns"
_EVALUATE = "use evaluate.load, torchmetrics or sklearn.metrics"
_PLAIN_NUMPY = "use Python's own {name}"
_FROM_LAYERS = "import from keras.layers itself"
_FROM_OPTIMIZERS = "import from keras.optimizers itself"
_TENSORFLOW_1 = "it belongs to TensorFlow 1: tf.compat.v1 still has it, for graphs run by hand"
_NO_SESSION = "leave it out: there are no sessions since TensorFlow 2"
_NO_PHASE = "call the model with training=True or training=False"
_FIT = "use fit, which takes generators too"
# Keras 2 backend functions that keras.ops has, those whose axis has another default there, and replacements for others.
_OPS = (
    "abs all any arange binary_crossentropy cast categorical_crossentropy clip cos dot elu equal exp eye greater greater_equal "
    "hard_sigmoid less less_equal log max maximum mean min minimum ndim not_equal one_hot ones ones_like prod relu reshape round "
    "shape sigmoid sign sin softmax softplus softsign sparse_categorical_crossentropy sqrt square squeeze stack std "
    "stop_gradient sum tanh tile transpose var zeros zeros_like"
)
_OPS_WITH_AXIS = ("argmax", "argmin", "concatenate", "cumprod", "cumsum", "expand_dims")
_BACKEND = {
    "int_shape": "read the tensor's shape",
    "dtype": "read the tensor's dtype",
    "eval": "use keras.ops.convert_to_numpy",
    "get_value": "use keras.ops.convert_to_numpy",
    "set_value": "use the variable's assign",
    "variable": "use keras.Variable",
    "constant": "use keras.ops.convert_to_tensor",
    "gather": "use keras.ops.take with axis=0",
    "map_fn": "use keras.ops.map",
    "permute_dimensions": "use keras.ops.transpose",
    "pow": "use keras.ops.power",
    "repeat": "use keras.layers.RepeatVector",
    "repeat_elements": "use keras.ops.repeat",
    "reverse": "use keras.ops.flip",
    "switch": "use keras.ops.where",
    "random_normal": "use keras.random.normal",
    "random_uniform": "use keras.random.uniform",
    "truncated_normal": "use keras.random.truncated_normal",
    "image_dim_ordering": "use keras.config.image_data_format",
    "set_image_dim_ordering": "use keras.config.set_image_data_format",
    "get_session": _NO_SESSION,
    "set_session": _NO_SESSION,
    "learning_phase": _NO_PHASE,
    "set_learning_phase": _NO_PHASE,
}

# Replacements by package and name; * is any suffix. Keras's are listed by module, for whichever package is used;
# keras.* is any of its modules. From the libraries' release notes and migration guides:
# transformers 4.x to 5, datasets 2 to 5, huggingface_hub 0.x to 2, accelerate 1.0, NumPy 1.24 and 2.0,
# pandas 2.0 and 3.0, scikit-learn 1.2, torch 1.8 and 2.0, TensorFlow 2.0, Keras 2 and 3.
MODULE_NAMES: dict[tuple[str, str], str] = {
    ("transformers", "AdamW"): "use torch.optim.AdamW",
    ("transformers", "TFTrainer"): "use Trainer with a PyTorch model",
    ("transformers", "TFTrainingArguments"): "use TrainingArguments with Trainer",
    ("transformers", "create_optimizer"): "use torch.optim.AdamW and get_scheduler, or the Trainer's arguments",
    ("transformers", "AdamWeightDecay"): "use torch.optim.AdamW",
    ("transformers", "KerasMetricCallback"): "pass compute_metrics= to the Trainer",
    ("transformers", "PushToHubCallback"): "write push_to_hub=True in TrainingArguments",
    ("transformers", "AutoModelWithLMHead"): "use AutoModelForCausalLM, AutoModelForMaskedLM or AutoModelForSeq2SeqLM",
    ("transformers", "AutoModelForVision2Seq"): "use AutoModelForImageTextToText",
    ("transformers", "EvaluationStrategy"): "use IntervalStrategy",
    ("transformers", "LineByLineTextDataset"): 'use datasets.load_dataset("text", …) and map the tokenizer over it',
    ("transformers", "TextDataset"): 'use datasets.load_dataset("text", …) and map the tokenizer over it',
    ("transformers", "GlueDataset"): 'use datasets.load_dataset("glue", …)',
    ("transformers", "SquadDataset"): 'use datasets.load_dataset("squad")',
    ("transformers", "glue_compute_metrics"): _EVALUATE,
    ("transformers", "glue_convert_examples_to_features"): "call the tokenizer on the texts",
    ("transformers", "InputExample"): "use rows of a datasets.Dataset",
    ("transformers", "DataCollatorForSOP"): "use DataCollatorForLanguageModeling",
    ("transformers", "*FeatureExtractor"): "use {stem}ImageProcessor, or AutoImageProcessor",
    ("transformers", "is_tf_available"): "leave it out: transformers 5 has PyTorch models only",
    ("transformers", "TF*"): _NO_TENSORFLOW,
    ("transformers", "Flax*"): _NO_TENSORFLOW,
    ("transformers", "modeling_tf_*"): "transformers 5 has PyTorch models only",
    ("transformers", "modeling_*"): "import from transformers itself: from transformers import …",
    ("transformers", "tokenization_*"): "import from transformers itself: from transformers import …",
    ("transformers", "keras_callbacks"): "pass compute_metrics= and callbacks= to the Trainer",
    ("transformers", "generation_utils"): "import from transformers.generation",
    ("transformers", "deepspeed"): "import from transformers.integrations.deepspeed",
    ("transformers", "agents"): "install smolagents",
    ("transformers", "load_metric"): _EVALUATE,
    ("huggingface_hub", "Repository"): "use upload_folder and create_repo, or the Trainer's push_to_hub()",
    ("huggingface_hub", "HfFolder"): "use login and get_token",
    ("huggingface_hub", "cached_download"): "use hf_hub_download",
    ("huggingface_hub", "InferenceApi"): "use InferenceClient",
    ("huggingface_hub", "*_keras"): "use keras.saving with a hf:// path",
    ("huggingface_hub", "*Filter"): "pass the filters to list_models or list_datasets as arguments",
    ("datasets", "load_metric"): _EVALUATE,
    ("datasets", "Metric"): _EVALUATE,
    ("datasets", "list_metrics"): _EVALUATE,
    ("datasets", "inspect_metric"): _EVALUATE,
    ("datasets", "list_datasets"): "use huggingface_hub.list_datasets",
    ("datasets", "set_caching_enabled"): "use datasets.enable_caching or disable_caching",
    ("accelerate", "memory_utils"): "import from accelerate.utils",
    ("numpy", "float"): _PLAIN_NUMPY,
    ("numpy", "int"): _PLAIN_NUMPY,
    ("numpy", "object"): _PLAIN_NUMPY,
    ("numpy", "str"): _PLAIN_NUMPY,
    ("numpy", "bool"): _PLAIN_NUMPY,
    ("numpy", "bool8"): "use np.bool_",
    ("numpy", "float_"): "use np.float64",
    ("numpy", "NaN"): "use np.nan",
    ("numpy", "Inf"): "use np.inf",
    ("numpy", "infty"): "use np.inf",
    ("numpy", "product"): "use np.prod",
    ("numpy", "trapz"): "use np.trapezoid",
    ("numpy", "in1d"): "use np.isin",
    ("sklearn", "load_boston"): "use fetch_california_housing, or load_diabetes",
    ("sklearn", "plot_confusion_matrix"): "use ConfusionMatrixDisplay.from_estimator",
    ("sklearn", "plot_roc_curve"): "use RocCurveDisplay.from_estimator",
    ("sklearn", "joblib"): "import joblib itself",
    ("sklearn", "cross_validation"): "import from sklearn.model_selection",
    ("torch", "_six"): "use Python's own str and collections.abc",
    ("keras.*", "text"): "use layers.TextVectorization; tf.keras.preprocessing.text still has Tokenizer",
    ("keras.*", "Tokenizer"): "use layers.TextVectorization; tf.keras.preprocessing.text still has it",
    (
        "keras.*",
        "ImageDataGenerator",
    ): "use keras.utils.image_dataset_from_directory and layers.RandomFlip and similar layers; tf.keras.preprocessing.image still has it",
    ("keras.*", "np_utils"): "use keras.utils.to_categorical",
    ("keras.*", "vis_utils"): "use keras.utils.plot_model",
    ("keras.*", "generic_utils"): "import from keras.utils itself",
    ("keras.*", "layer_utils"): "import from keras.utils itself",
    ("keras.*", "multi_gpu_model"): "use keras.distribution.DataParallel, or tf.distribute.MirroredStrategy",
    ("keras.*", "scikit_learn"): "use keras.wrappers.SKLearnClassifier and similar classes",
    ("keras.*", "KerasClassifier"): "use keras.wrappers.SKLearnClassifier",
    ("keras.*", "KerasRegressor"): "use keras.wrappers.SKLearnRegressor",
    ("keras.*", "CuDNN*"): "use the layer without CuDNN in its name: it uses cuDNN automatically",
    ("keras.*", "Merge"): "use layers.Concatenate, layers.Add and similar layers",
    ("keras.*", "ThresholdedReLU"): "use layers.ReLU(threshold=…)",
    ("keras.layers", "experimental"): _FROM_LAYERS,
    ("keras.optimizers", "experimental"): _FROM_OPTIMIZERS,
    ("keras.optimizers", "legacy"): _FROM_OPTIMIZERS,
    (
        "keras.mixed_precision",
        "experimental",
    ): "use keras.mixed_precision itself; set_policy is set_global_policy there",
    (
        "keras",
        "experimental",
    ): "keras.optimizers.schedules has CosineDecay and CosineDecayRestarts; the rest was removed",
    ("keras", "engine"): "import from keras itself: it has Model, Sequential, Layer, Input and InputSpec",
    ("keras.*", "core"): _FROM_LAYERS,
    ("keras.*", "convolutional"): _FROM_LAYERS,
    ("keras.*", "recurrent"): _FROM_LAYERS,
    ("keras.*", "embeddings"): _FROM_LAYERS,
    ("keras.*", "normalization"): _FROM_LAYERS,
    ("keras.*", "advanced_activations"): _FROM_LAYERS,
    ("keras.*", "pooling"): _FROM_LAYERS,
    ("keras.*", "merge"): _FROM_LAYERS,
    ("keras.*", "noise"): _FROM_LAYERS,
    ("keras.*", "topology"): _FROM_LAYERS,
    **{("keras.backend", name): f"use keras.ops.{name}" for name in _OPS.split()},
    **{("keras.backend", name): f"use keras.ops.{name}, and give it the axis" for name in _OPS_WITH_AXIS},
    **{("keras.backend", name): text for name, text in _BACKEND.items()},
    ("keras.backend", "*"): "keras.ops has most functions of Keras 2's backend, some under NumPy's names",
    ("tensorflow", "contrib"): "most of it moved to tensorflow-addons and Keras; some was removed",
    ("tensorflow", "Session"): _TENSORFLOW_1,
    ("tensorflow", "InteractiveSession"): _TENSORFLOW_1,
    ("tensorflow", "ConfigProto"): _TENSORFLOW_1,
    ("tensorflow", "placeholder"): _TENSORFLOW_1,
    ("tensorflow", "global_variables_initializer"): _TENSORFLOW_1,
    ("tensorflow", "get_default_graph"): _TENSORFLOW_1,
    ("tensorflow", "reset_default_graph"): _TENSORFLOW_1,
    ("tensorflow", "set_random_seed"): "use tf.random.set_seed, or keras.utils.set_random_seed",
}
# The same for attributes of objects, by the name of one of their classes.
CLASS_NAMES: dict[tuple[str, str], str] = {
    ("PreTrainedTokenizerBase", "encode_plus"): _CALL,
    ("PreTrainedTokenizerBase", "batch_encode_plus"): _CALL + " with the list of texts",
    ("PreTrainedTokenizerBase", "prepare_seq2seq_batch"): _CALL + " with text_target= for the labels",
    ("PreTrainedTokenizerBase", "as_target_tokenizer"): "write tokenizer(text_target=…)",
    ("PreTrainedTokenizerBase", "max_len"): "use tokenizer.model_max_length",
    ("PreTrainedTokenizerBase", "additional_special_tokens"): "use tokenizer.extra_special_tokens",
    ("PreTrainedTokenizerBase", "build_inputs_with_special_tokens"): _CALL + " with two texts for a pair",
    ("PreTrainedTokenizerBase", "prepare_for_model"): _CALL,
    ("Trainer", "tokenizer"): "use trainer.processing_class",
    ("Trainer", "prediction_loop"): "use trainer.evaluation_loop",
    ("Trainer", "is_local_master"): "use trainer.is_local_process_zero()",
    ("PreTrainedModel", "prepare_tf_dataset"): "give the data set to the Trainer",
    ("PreTrainedModel", "to_bettertransformer"): 'load the model with attn_implementation="sdpa"',
    ("Dataset", "remove_columns_"): _UNDERSCORE,
    ("Dataset", "rename_column_"): _UNDERSCORE,
    ("Dataset", "flatten_"): _UNDERSCORE,
    ("Dataset", "cast_"): _UNDERSCORE,
    ("Dataset", "dictionary_encode_column_"): "use class_encode_column and keep what it returns",
    ("DataFrame", "append"): "use pd.concat",
    ("DataFrame", "iteritems"): "use items()",
    ("DataFrame", "ix"): "use loc or iloc",
    ("DataFrame", "as_matrix"): "use to_numpy()",
    ("DataFrame", "applymap"): "use map",
    ("Series", "append"): "use pd.concat",
    ("Series", "iteritems"): "use items()",
    ("Model", "fit_generator"): _FIT,
    ("Model", "evaluate_generator"): "use evaluate, which takes generators too",
    ("Model", "predict_generator"): "use predict, which takes generators too",
    (
        "Model",
        "predict_classes",
    ): "write model.predict(x).argmax(axis=-1), or (model.predict(x) > 0.5) for one sigmoid unit",
    ("Model", "predict_proba"): "use predict",
    ("Layer", "output_shape"): "use layer.output.shape",
    ("Layer", "input_shape"): "use layer.input.shape",
    ("BaseOptimizer", "lr"): "use optimizer.learning_rate",
    ("BaseOptimizer", "get_gradients"): "use tf.GradientTape, or keras.Model.train_step",
    ("BaseOptimizer", "minimize"): "take the gradients of the loss yourself, and give them to apply",
}


def replacement(owner: str, name: str, *, package: str, of_class: bool) -> str | None:
    """The tables' entry for a name; None if there is none.

    `{name}`, `{bare}` and `{stem}` in it stand for parts of the name (`filled`).

    Args:
        owner: the module that was asked, or the names of an object's classes, separated by blanks.
    """
    table = CLASS_NAMES if of_class else MODULE_NAMES
    owners = owner.split(" ") if of_class else _reached(owner, package)
    for (holder, known), text in table.items():
        head, star, tail = known.partition("*")
        fits = name.startswith(head) and name.endswith(tail) if star else name == known
        if holder in owners and fits:
            return text
    return None


def fill_replacement(text: str, name: str, near: str | None) -> str:
    """A replacement with the parts of the name filled in.

    Args:
        near: the nearest name that the module has.
    """
    bare = near or name.removeprefix("TF").removeprefix("Flax")
    return text.format(name=name.rstrip("_"), bare=bare, stem=name.removesuffix("FeatureExtractor"))


def _reached(owner: str, package: str) -> tuple[str, ...]:
    """The module under its canonical name: tf.keras.layers and keras._tf_keras.keras.layers are keras.layers."""
    parts = owner.split(".")
    if "keras" not in parts:
        return (package, owner)
    inside = parts[len(parts) - parts[::-1].index("keras") :]
    return (".".join(["keras", *(p for p in inside if p != "api")]), "keras.*")
