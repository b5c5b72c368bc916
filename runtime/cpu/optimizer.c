/* optimizer.c: one step of SGD with momentum, or of AdamW (Loshchilov and
 * Hutter 2019, algorithm 2, with the decay multiplied by the rate as in
 * PyTorch), for one parameter. */
#include "real.h"

void pp_sgd(float *w, const float *grad, float *velocity, size_t count,
            const PpSgd *h, float decay)
{
    float rate = h->rate, momentum = h->momentum, scale = h->scale;
    if (isnan(scale))
        return;
    if (!velocity) {
#pragma omp simd
        for (size_t i = 0; i < count; i++)
            w[i] -= rate * (scale * grad[i] + decay * w[i]);
        return;
    }
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = scale * grad[i] + decay * w[i];
        velocity[i] = momentum * velocity[i] + g;
        w[i] -= rate * velocity[i];
    }
}

/* Both averages start at zero; dividing by 1 - beta^step removes that bias. The
 * division of the mean goes into the rate, that of the variance into its root,
 * once for all elements. */
void pp_adamw(float *w, const float *grad, float *mean, float *variance,
              size_t count, const PpAdamw *h, float decay)
{
    float beta1 = h->beta1, beta2 = h->beta2, epsilon = h->epsilon,
          scale = h->scale;
    if (isnan(scale))
        return;
    float rate = (float)(h->rate / (1 - pow(beta1, h->step)));
    float root = (float)sqrt(1 / (1 - pow(beta2, h->step)));
    float keep = 1 - h->rate * decay;
    for (size_t i = 0; i < count; i++) {
        float g = scale * grad[i];
        mean[i] = beta1 * mean[i] + (1 - beta1) * g;
        variance[i] = beta2 * variance[i] + (1 - beta2) * g * g;
        w[i] = keep * w[i] -
               rate * mean[i] / (sqrtf(variance[i]) * root + epsilon);
    }
}
