"""What the four papers print and claim, as data, and what a run of ours says of it.

Three kinds of evidence are never mixed: whether a claim follows from what the paper itself prints
(:func:`claims`); what a run says of the printed numbers (:func:`compare`); and what the planted
world says of a measure, which is no evidence about any model.

>>> claims("srinivasan2021")["answer"].value_counts().to_dict()
{'cannot be said': 25, 'in part': 2}
"""

from biaslib.reproduction._claims import ANSWERS, claims, limits
from biaslib.reproduction._compare import (
    VERDICTS,
    compare,
    findings,
    judge_list,
    judge_number,
)
from biaslib.reproduction._printed import printed
from biaslib.reproduction._records import (
    FORMAT,
    RecordError,
    counts_of,
    read,
    record,
    stamp,
)
from biaslib.reproduction._run import STUDIES, reproduce, write_record
from biaslib.reproduction._run_tables import ninety, tables_of_run

__all__ = [
    "ANSWERS",
    "FORMAT",
    "STUDIES",
    "VERDICTS",
    "RecordError",
    "claims",
    "compare",
    "counts_of",
    "findings",
    "judge_list",
    "judge_number",
    "limits",
    "ninety",
    "printed",
    "read",
    "record",
    "reproduce",
    "stamp",
    "tables_of_run",
    "write_record",
]
