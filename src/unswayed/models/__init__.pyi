from unswayed.models.build import build as build
from unswayed.models.build import features as features
from unswayed.models.cnn import CNN as CNN
from unswayed.models.mlp import MLP as MLP
from unswayed.models.resnet import ResNet as ResNet
from unswayed.models.spec import ModelSpec as ModelSpec
