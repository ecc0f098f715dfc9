"""Adapters: one small file a family, and `load`, which finds the right one."""

from rankcollapse.families.albert import Albert
from rankcollapse.families.bert import Bert
from rankcollapse.families.family import Family
from rankcollapse.families.gpt2 import Gpt2
from rankcollapse.families.xlnet import Xlnet

FAMILIES: dict[str, Family] = {
    model_type: family
    for family in (Bert(), Albert(), Xlnet(), Gpt2())
    for model_type in family.model_types
}

__all__ = ["FAMILIES", "Family"]
