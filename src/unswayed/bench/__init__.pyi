from unswayed.bench.grid import Cell as Cell
from unswayed.bench.grid import Grid as Grid
from unswayed.bench.grid import read_grid as read_grid
from unswayed.bench.paper import PRESETS as PRESETS
from unswayed.bench.paper import paper_grid as paper_grid
from unswayed.bench.published import published as published
from unswayed.bench.store import Store as Store
