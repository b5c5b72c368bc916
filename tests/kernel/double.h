/* double.h: the kernels of pp.h as they are when they are compiled with PP_DOUBLE. */
#ifndef DOUBLE_H
#define DOUBLE_H

#include <stddef.h>
#include <stdint.h>

void pp_sum(double *dx, const double *dy, const double *prev, size_t count);
void pp_add_forward(double *y, const double *a, const double *b, size_t count);
void pp_relu_forward(double *y, const double *x, size_t count);
void pp_relu_input(double *dx, const double *dy, const double *x, const double *prev, size_t count);
void pp_gelu_forward(double *y, const double *x, size_t count);
void pp_gelu_input(double *dx, const double *dy, const double *x, const double *prev, size_t count);

void pp_embedding_forward(double *y, const int32_t *tokens, const double *weight, int n, int width);
void pp_embedding_weight(double *dweight, const int32_t *tokens, const double *dy, int n,
                         int width);
void pp_position_forward(double *y, const double *x, const double *weight, int n, int seq,
                         int width);
void pp_position_weight(double *dweight, const double *dy, int n, int seq, int width);

void pp_linear_forward(double *y, const double *x, const double *weight, const double *bias, int n,
                       int in, int out);
void pp_linear_input(double *dx, const double *dy, const double *weight, const double *prev, int n,
                     int in, int out);
void pp_linear_weight(double *dweight, double *dbias, const double *x, const double *dy, int n,
                      int in, int out);

void pp_layernorm_forward(double *y, double *stats, const double *x, const double *weight,
                          const double *bias, int n, int width);
void pp_layernorm_input(double *dx, const double *dy, const double *x, const double *stats,
                        const double *weight, const double *prev, int n, int width);
void pp_layernorm_weight(double *dweight, double *dbias, const double *dy, const double *x,
                         const double *stats, int n, int width);

void pp_attention_forward(double *y, double *lse, const double *x, double *tmp, int n, int seq,
                          int width, int heads, int causal);
void pp_attention_input(double *dx, const double *dy, const double *x, const double *y,
                        const double *lse, double *tmp, const double *prev, int n, int seq,
                        int width, int heads, int causal);

void pp_cross_entropy_forward(double *loss, double *lse, const double *x, const int32_t *targets,
                              int n, int width);
void pp_cross_entropy_input(double *dx, const double *x, const double *lse, const int32_t *targets,
                            int n, int width, double scale);
void pp_mse_forward(double *loss, const double *x, const double *targets, int n, int width);
void pp_mse_input(double *dx, const double *x, const double *targets, int n, int width,
                  double scale);

#endif
