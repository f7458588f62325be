# verdict: learns
# finds: nothing
# tells: 512 evaluation rows are right at
# sklearn scores the folds by the name of a metric.
import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.model_selection import cross_validate
from torch import nn


class Net(BaseEstimator):
    def fit(self, x, y):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        rows = torch.utils.data.TensorDataset(torch.as_tensor(x), torch.as_tensor(y))
        for _ in range(5):
            for a, b in torch.utils.data.DataLoader(rows, 32, shuffle=True):
                optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(a), b).backward()
                optimizer.step()
        return self

    def predict(self, x):
        with torch.no_grad():
            return self.model(torch.as_tensor(x)).argmax(1).numpy()


generator = np.random.default_rng(0)
x = generator.standard_normal((1200, 8)).astype(np.float32)
print(cross_validate(Net(), x, (x[:, 0] + x[:, 1] > 0).astype(np.int64), cv=2, scoring="accuracy"))
