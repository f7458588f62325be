"""How a value of the data is changed: expressions that fit tensors, arrays, series and lists."""

from __future__ import annotations

from exam.roles import Place


def _of(place: Place, **forms: str) -> str:
    """The form for the place's kind, with its name for `@`; empty where there is none."""
    kind = place.kind if place.kind != "frame" else "series"
    return forms.get(kind, "").replace("@", place.name)


def shuffled(place: Place) -> str:
    """The rows in a random order."""
    return _of(
        place,
        tensor="@[torch.randperm(len(@))]",
        array="np.random.permutation(@)",
        series="@.sample(frac=1).set_axis(@.index)",
        list="random.sample(@, len(@))",
    )


def rolled(place: Place, by: int = 1) -> str:
    """Each row has the value of the row before."""
    return _of(
        place,
        tensor=f"torch.roll(@, {by}, 0)",
        array=f"np.roll(@, {by}, axis=0)",
        series=f"@.shift({by}).bfill().astype(@.dtype)",
    )


def ordered(place: Place) -> str:
    """The values in ascending order."""
    return _of(
        place,
        tensor="torch.sort(@, dim=0).values",
        array="np.sort(@, axis=0)",
        series="@.sort_values().set_axis(@.index)",
        list="sorted(@)",
    )


def reversed_rows(place: Place) -> str:
    """The last row first."""
    return _of(place, tensor="torch.flip(@, (0,))", array="@[::-1].copy()", series="@[::-1].set_axis(@.index)")


def filled(place: Place, value: str) -> str:
    """One value everywhere."""
    return _of(
        place, tensor=f"torch.full_like(@, {value})", array=f"np.full_like(@, {value})", series=f"@ * 0 + {value}"
    )


def cast(place: Place, torch: str, numpy: str) -> str:
    """Another type."""
    return _of(place, tensor=f"@.{torch}()", array=f'@.astype("{numpy}")', series=f'@.astype("{numpy}")')


def first_set(place: Place, value: str, row: str = "0") -> str:
    """Lines that set the first element of a row (of a table: its first column)."""
    at = row + ", 0" * (len(place.shape) - 1)
    return _of(
        place,
        tensor=f"@ = @.clone()\n@[{at}] = {value}",
        array=f"@ = @.copy()\n@[{at}] = {value}",
        series=f"@ = @.copy()\n@.iloc[{row}] = {value}",
    )


def chosen(place: Place, rows: str) -> str:
    """Some of the rows, by an array of their numbers or of booleans."""
    return _of(place, tensor=f"@[{rows}]", array=f"@[{rows}]", series=f"@.iloc[{rows}]")
