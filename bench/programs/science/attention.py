"""Causal attention with several heads, from plain products (A. Vaswani and others, NIPS 2017)."""

sizes = {"small": (2, 2, 16, 8), "medium": (4, 4, 128, 32), "large": (8, 8, 512, 64)}
gradient = 0


def make(size, rng):
    batch, heads, length, width = sizes[size]
    model = heads * width
    params = [(rng.randn(model, model) / model**0.5).astype("f") for _ in range(4)]
    return params, rng.randn(batch, length, model).astype("f"), heads


def program(xp, params, x, heads):
    batch, length, model = x.shape

    def split(w):
        return xp.swapaxes((x @ w).reshape(batch, length, heads, model // heads), 1, 2)

    q, k, v = map(split, params[:3])
    scores = q @ xp.swapaxes(k, -1, -2) * (model // heads) ** -0.5
    seen = xp.tril(xp.ones_like(scores[0, 0])) > 0
    scores = xp.where(seen, scores, -1e9)
    weights = xp.exp(scores - xp.amax(scores, -1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    joined = xp.swapaxes(weights @ v, 1, 2).reshape(batch, length, model)
    return ((joined @ params[3]) ** 2).mean()


def torch_form(torch, params, x, heads):
    batch, length, model = x.shape
    shape = batch, length, heads, model // heads
    q, k, v = ((x @ w).reshape(shape).transpose(1, 2) for w in params[:3])
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return ((out.transpose(1, 2).reshape(x.shape) @ params[3]) ** 2).mean()
