"""Train classifiers on labels that are partly wrong.

>>> import torch, unswayed
>>> criterion = unswayed.VCE(a=4)                     # a drop-in for torch.nn.CrossEntropyLoss
>>> logits = torch.zeros(2, 10, requires_grad=True)
>>> criterion(logits, torch.tensor([3, 7])).backward()
>>> unswayed.loss("nce + 10*vce(a=4)")                # the same language everywhere
nce + 10*vce(a=4)
"""

from unswayed._lazy import attach

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach(__name__, __file__)
