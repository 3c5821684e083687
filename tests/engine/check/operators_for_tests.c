/* Operators of a library, as one that uses Planloom would write them. */
#include "planloom_operator.h"

#include <math.h>

PLANLOOM_OPERATOR_LIBRARY

/* y[.., h] = x[.., h] * sigmoid(beta * x[.., h]) * scale[h]; kept[.., h] = sigmoid(beta * x). */
PLANLOOM_OPERATOR_FUNCTION int scaled_swish(const planloom_operator_call *call)
{
    const planloom_operator_tensor *x = &call->inputs[0];
    const planloom_operator_tensor *scale = &call->inputs[1];
    const planloom_operator_attribute *beta = planloom_operator_find(call, "beta");
    const int64_t count = planloom_operator_count(x);
    const int64_t h = scale->sizes[0];
    const float *in = (const float *)x->data;
    const float *factor = (const float *)scale->data;
    float *out = (float *)call->outputs[0].data;
    float *kept = call->output_count > 1 ? (float *)call->outputs[1].data : NULL;
    int64_t i;
    if (x->type != PLANLOOM_OPERATOR_FLOAT32)
        return planloom_operator_fail(call, "scaled_swish takes float32");
    if (beta == NULL)
        return planloom_operator_fail(call, "the attribute beta is missing");
    for (i = 0; i < count; ++i) {
        const float sigmoid = 1.0f / (1.0f + expf(-(float)beta->number * in[i]));
        if (kept != NULL)
            kept[i] = sigmoid;
        if (out != NULL)
            out[i] = in[i] * sigmoid * factor[i % h];
    }
    return 0;
}

/* (dy, x, scale, kept) -> (dx, dscale). Adds in a workspace of h doubles. */
PLANLOOM_OPERATOR_FUNCTION int scaled_swish_gradient(const planloom_operator_call *call)
{
    const float *dy = (const float *)call->inputs[0].data;
    const float *in = (const float *)call->inputs[1].data;
    const float *factor = (const float *)call->inputs[2].data;
    const float *kept = (const float *)call->inputs[3].data;
    float *dx = (float *)call->outputs[0].data;
    float *dscale = (float *)call->outputs[1].data;
    const planloom_operator_attribute *beta = planloom_operator_find(call, "beta");
    const int64_t count = planloom_operator_count(&call->inputs[1]);
    const int64_t h = call->inputs[2].sizes[0];
    double *sums = (double *)call->workspace;
    int64_t i;
    if (call->workspace_size < (uint64_t)h * sizeof(double))
        return planloom_operator_fail(call, "the workspace is too small");
    for (i = 0; i < h; ++i)
        sums[i] = 0;
    for (i = 0; i < count; ++i) {
        const float s = kept[i];
        if (dx != NULL)
            dx[i] = dy[i] * factor[i % h] * (s + in[i] * (float)beta->number * s * (1.0f - s));
        sums[i % h] += (double)dy[i] * in[i] * s;
    }
    if (dscale != NULL)
        for (i = 0; i < h; ++i)
            dscale[i] = (float)sums[i];
    return 0;
}

/* Always fails, and says why. */
PLANLOOM_OPERATOR_FUNCTION int always_fails(const planloom_operator_call *call)
{
    return planloom_operator_fail(call, "it never works");
}
