"""How well a stride prefetcher could foresee the misses of each program.

Cachegrind has no prefetcher and its counts do not tell sequential misses from scattered ones, so
this is the one property of a profile that is not measured. Each program is put into one of three
classes by the data structures it walks; the reason stands beside it. The values of the classes
follow what stream buffers and stride tables were found to remove: 50 to 90 % of the misses of
scientific codes, little of pointer codes (Palacharla and Kessler, ISCA 1994; Baer and Chen, IEEE
Transactions on Computers 44, 1995).
"""

from __future__ import annotations

CLASSES = {"sequential": 0.9, "mixed": 0.5, "irregular": 0.1}

PREFETCH: dict[str, tuple[str, str]] = {
    # Splash-3
    "barnes": ("irregular", "walks an octree"),
    "fmm": ("mixed", "walks a tree whose cells hold arrays of particles"),
    "ocean_cp": ("sequential", "sweeps over grids"),
    "ocean_ncp": ("sequential", "sweeps over grids"),
    "radiosity": ("irregular", "tree of patches, linked interactions"),
    "raytrace": ("irregular", "grid cells and lists along rays"),
    "volrend": ("mixed", "samples a voxel array along rays, skips by an octree"),
    "water_nsquared": ("sequential", "all pairs of an array of molecules"),
    "water_spatial": ("mixed", "cells with linked lists of molecules"),
    "cholesky": ("mixed", "dense panels of a sparse matrix"),
    "fft": ("sequential", "rows and transposes of a matrix"),
    "lu_cb": ("sequential", "dense blocks"),
    "lu_ncb": ("sequential", "dense blocks of a row-major matrix"),
    "radix": ("sequential", "reads keys in order; the scattered accesses are stores"),
    # PARSEC
    "blackscholes": ("sequential", "array of options"),
    "bodytrack": ("mixed", "samples images at projected edges"),
    "canneal": ("irregular", "random elements and their nets"),
    "dedup": ("mixed", "chunks in order, hash tables"),
    "ferret": ("mixed", "images in order, hash tables, small matrices"),
    "fluidanimate": ("mixed", "cells in order, neighbours aside"),
    "freqmine": ("irregular", "walks a prefix tree"),
    "streamcluster": ("sequential", "array of points, again and again"),
    "swaptions": ("sequential", "small dense matrices"),
    "x264": ("mixed", "blocks of frames, motion search"),
    # Relatives of SPEC CPU2006 members
    "bzip2": ("irregular", "sorts suffixes of a block"),
    "gcc": ("irregular", "trees and lists"),
    "perl": ("irregular", "hash tables and reference-counted values"),
    "gnugo": ("irregular", "board patterns and caches"),
    "hmmer2": ("sequential", "rows of a dynamic-programming matrix"),
    "hmmer3": ("sequential", "rows of a dynamic-programming matrix"),
    "sjeng": ("irregular", "hash tables"),
    "libquantum": ("sequential", "array of amplitudes"),
    "mcf": ("mixed", "scans arcs, follows a tree"),
    "h264c": ("mixed", "blocks of frames, motion search"),
    "xalan": ("irregular", "tree of nodes"),
    "povray": ("irregular", "objects along rays"),
    "gromacs": ("mixed", "neighbour lists into an array of atoms"),
    "calculix": ("mixed", "dense fronts of a sparse matrix"),
    "soplex": ("mixed", "columns of a sparse matrix"),
    "sphinx": ("mixed", "scores arrays of Gaussians, walks a search graph"),
    # Pipeline stages
    "dedup.fragment": ("sequential", "copies a file"),
    "dedup.refine": ("sequential", "rolling hash over a buffer"),
    "dedup.deduplicate": ("sequential", "SHA-1 over chunks; one hash look-up each"),
    "dedup.compress": ("mixed", "a window in order, hash chains into it"),
    "dedup.reorder": ("mixed", "search tree, writes chunks in order"),
    "ferret.load": ("sequential", "decodes images in order"),
    "ferret.seg": ("mixed", "images in order, regions by neighbour graph"),
    "ferret.extract": ("sequential", "images in order"),
    "ferret.vec": ("irregular", "locality-sensitive hash tables"),
    "ferret.rank": ("mixed", "feature vectors by candidate, small dense matrices"),
    "ferret.out": ("mixed", "short result lists"),
}
