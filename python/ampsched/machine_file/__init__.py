"""Machine files from what computers say of themselves.

Data flow: a *source* (this computer, a saved tree of /sys, lscpu, hwloc, a device tree, LISA's plat_info, an energy
model) becomes a tree of files as Linux shows them (`tree`), with what has no place there beside it (`Source`). One
reader makes facts of any tree (`reading`), with the rules of crates/computer for classes, kinds, clocks and energy.
Core types are chosen for them (`core_types`), and one writer makes a machine file (`writing`), for ``ampsched
calibrate``, too.
"""
