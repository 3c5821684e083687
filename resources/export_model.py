# Writes model.pt2 and model.onnx: either opens in Planloom. Put your model, its inputs and its loss here.
import torch
from my_package import MyModel

class WithLoss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image, labels):
        return torch.nn.functional.cross_entropy(self.model(image), labels)

module, inputs = WithLoss(MyModel()).train(), (torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,)))
torch.export.save(torch.export.export(module, inputs), "model.pt2")
torch.onnx.export(module, inputs, "model.onnx", dynamo=True, optimize=False, output_names=["loss"])
