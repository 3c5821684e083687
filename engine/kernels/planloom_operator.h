/* Operators of your own, computed by a shared library: the C interface that operator files call by
 *
 *     library "libmyops.so" my_function
 *
 * A library is made of this header and nothing else of Planloom:
 *
 *     #include "planloom_operator.h"
 *
 *     PLANLOOM_OPERATOR_LIBRARY
 *
 *     PLANLOOM_OPERATOR_FUNCTION int my_function(const planloom_operator_call *call)
 *     {
 *         const planloom_operator_tensor *x = &call->inputs[0];
 *         const planloom_operator_tensor *y = &call->outputs[0];
 *         if (x->type != PLANLOOM_OPERATOR_FLOAT32)
 *             return planloom_operator_fail(call, "my_function takes float32");
 *         for (int64_t i = 0; i < planloom_operator_count(x); ++i)
 *             ((float *)y->data)[i] = 2 * ((const float *)x->data)[i];
 *         return 0;
 *     }
 *
 *     cc -shared -fPIC -O2 -o libmyops.so myops.c
 *
 * Rules: inputs are not written; every wanted output is written wholly; nothing is kept of what a call points
 * to; several threads may call at once, so a function has no state of its own; no exceptions leave it.
 * Plain C (C99) and C++. Version 1. Later versions add fields at the ends of the structures alone.
 */
#ifndef PLANLOOM_OPERATOR_H
#define PLANLOOM_OPERATOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PLANLOOM_OPERATOR_VERSION 1

#ifdef __cplusplus
extern "C" {
#define PLANLOOM_OPERATOR_FUNCTION extern "C" __attribute__((visibility("default")))
#else
#define PLANLOOM_OPERATOR_FUNCTION __attribute__((visibility("default")))
#endif

/* Element types. Half precision arrives widened to float32. */
enum {
    PLANLOOM_OPERATOR_FLOAT32 = 1,
    PLANLOOM_OPERATOR_FLOAT64 = 2,
    PLANLOOM_OPERATOR_INT64 = 3,
    PLANLOOM_OPERATOR_INT32 = 4,
    PLANLOOM_OPERATOR_INT16 = 5,
    PLANLOOM_OPERATOR_INT8 = 6,
    PLANLOOM_OPERATOR_UINT8 = 7,
    PLANLOOM_OPERATOR_BOOL = 8 /* one byte, 0 or 1 */
};

/* A part of a tensor. Where an operator is split, a call has the part of one device. */
typedef struct planloom_operator_tensor {
    void *data; /* NULL: an optional input that is absent, or an output that nobody wants */
    int32_t type; /* PLANLOOM_OPERATOR_FLOAT32, ... */
    int32_t rank; /* number of dimensions; 0 for a scalar */
    const int64_t *sizes; /* of this part, by dimension, outermost first */
    const int64_t *strides; /* in elements; row-major without gaps in this version */
    const int64_t *offsets; /* where the part begins in the whole tensor */
    const int64_t *whole; /* sizes of the whole tensor */
} planloom_operator_tensor;

/* An attribute of the operator: one of a number, a text and a list of numbers. */
typedef struct planloom_operator_attribute {
    const char *name;
    double number; /* of an integer, too */
    const char *text; /* NULL if it is no text */
    const double *numbers; /* NULL if it is no list */
    uint64_t count; /* of `numbers` */
} planloom_operator_attribute;

typedef struct planloom_operator_call {
    uint32_t version; /* PLANLOOM_OPERATOR_VERSION of the caller */
    uint32_t size; /* sizeof(planloom_operator_call) of the caller: fields beyond it are not there */
    const char *type; /* "my.ops::Swish" */
    const char *name; /* of the operator in the model, for messages */
    uint32_t input_count; /* as in the operator file's line "inputs" */
    uint32_t output_count; /* "outputs", then "saves" */
    const planloom_operator_tensor *inputs;
    const planloom_operator_tensor *outputs;
    uint32_t attribute_count;
    uint32_t reserved;
    const planloom_operator_attribute *attributes;
    void *workspace; /* as many bytes as the line "workspace" says; NULL for none */
    uint64_t workspace_size;
    char *error; /* a function that fails writes here why, ending with 0 */
    uint64_t error_size; /* bytes of `error` */
} planloom_operator_call;

/* What an operator file names: 0 if all went well, any other number if not. */
typedef int (*planloom_operator_function)(const planloom_operator_call *call);

/* Every library says which version it was made for. */
uint32_t planloom_operator_version(void);
#define PLANLOOM_OPERATOR_LIBRARY                                                                            \
    PLANLOOM_OPERATOR_FUNCTION uint32_t planloom_operator_version(void)                                      \
    {                                                                                                        \
        return PLANLOOM_OPERATOR_VERSION;                                                                    \
    }

/* Elements of a part. */
static inline int64_t planloom_operator_count(const planloom_operator_tensor *tensor)
{
    int64_t count = 1;
    int32_t i;
    for (i = 0; i < tensor->rank; ++i)
        count *= tensor->sizes[i];
    return count;
}

/* The attribute called `name`; NULL if there is none. */
static inline const planloom_operator_attribute *planloom_operator_find(
    const planloom_operator_call *call, const char *name)
{
    uint32_t i;
    for (i = 0; i < call->attribute_count; ++i)
        if (strcmp(call->attributes[i].name, name) == 0)
            return &call->attributes[i];
    return NULL;
}

/* Says why a call fails: `return planloom_operator_fail(call, "...")`. */
static inline int planloom_operator_fail(const planloom_operator_call *call, const char *why)
{
    if (call->error_size > 0) {
        strncpy(call->error, why, (size_t)call->error_size - 1);
        call->error[call->error_size - 1] = 0;
    }
    return 1;
}

#ifdef __cplusplus
}
#endif

#endif
