"""google-metrax: measures that are merged over batches."""

import jax
import metrax

keys = jax.random.split(jax.random.key(0), 4)
logits, labels = jax.random.normal(keys[0], (2, 10)), jax.random.bernoulli(keys[1], 0.5, (2, 10))
predictions = jax.nn.sigmoid(logits + labels)
for metric in (metrax.Precision, metrax.Recall, metrax.AUCROC, metrax.AUCPR):
    parts = [metric.from_model_output(predictions=p, labels=y) for p, y in zip(predictions, labels)]
    print(metric.__name__, parts[0].merge(parts[1]).compute())
for metric in (metrax.MSE, metrax.RMSE, metrax.MAE, metrax.RSQUARED):
    print(metric.__name__, metric.from_model_output(logits, predictions).compute())
tokens = jax.random.randint(keys[2], (2, 6), 0, 5)
scores = jax.random.normal(keys[3], (2, 6, 5))
print(metrax.Perplexity.from_model_output(scores, tokens).compute())
