from typing import TypedDict


class Rules(TypedDict, total=False):
    pass
