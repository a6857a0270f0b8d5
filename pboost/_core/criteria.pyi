from enum import IntEnum

Criterion: type[IntEnum]
