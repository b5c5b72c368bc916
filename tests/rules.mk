# tests/rules.mk: what the tests and benchmarks are built from, and the simulated GPU; part of the Makefile.

gpu-test: all
	@$(SH) tests/gpu-test

.PHONY: gpu-test sim

# ---- programs of the tests and benchmarks ----

DOUBLE = $(patsubst runtime/cpu/%.c,$B/double/%.o,$(filter-out %/device.c %/host.c %/optimizer.c,\
         $(wildcard runtime/cpu/*.c)))
TEST_C = $(CC) -std=c11 $(CFLAGS) $(WARN) -MMD -MP -o $@

$B/double/%.o: runtime/cpu/%.c $B/flags
	@mkdir -p $(@D)
	$(COMPILE) $(KERNEL_CFLAGS) -DPP_DOUBLE

# Every row of the op table is differentiated: the calls are written from it.
$B/tests/kernel/calls.h: $B/tests/kernel/calls/print
	$< > $@.new
	mv $@.new $@

$B/tests/kernel/finite_difference: tests/kernel/finite_difference.c $B/tests/kernel/calls.h $(DOUBLE) $B/libpipec.a
	@mkdir -p $(@D)
	$(TEST_C) $(PIPEC_FLAGS) -I$(@D) $< $(DOUBLE) $B/libpipec.a -lm

$B/tests/kernel/float: tests/kernel/float.c $(KERNELS) $B/runtime/random.o
	@mkdir -p $(@D)
	$(TEST_C) $(KERNEL_CFLAGS) $< $(KERNELS) $B/runtime/random.o $(LIBS)

# A whole pipec, but for `prove`.
$B/tests/agree/bend: tests/agree/bend.c $B/compiler/drive/main.o $B/libpipec.a
	@mkdir -p $(@D)
	$(TEST_C) $(PIPEC_FLAGS) -Wl,--wrap=prove $(filter %.c %.o %.a,$^) -lm

$B/tests/%: tests/%.c $B/libpipec.a
	@mkdir -p $(@D)
	$(TEST_C) $(PIPEC_FLAGS) -Itests $< $B/libpipec.a -lm

$B/bench/kernel: bench/kernel.c $(KERNELS) $B/runtime/random.o
	@mkdir -p $(@D)
	$(TEST_C) $< $(KERNELS) $B/runtime/random.o $(LIBS)

$B/bench/%: bench/%.c $B/libpipec.a
	@mkdir -p $(@D)
	$(TEST_C) $(PIPEC_FLAGS) -Itests $< $B/libpipec.a -lm

# ---- the CUDA sources against a simulated device: see tests/cudasim/README ----

SIM = $B/sim/lib/pipec
SIM_FLAGS = -std=c++20 -O2 -g -fno-strict-aliasing -fno-extern-tls-init -Wall -Wextra -Werror \
            -Wno-unknown-pragmas -Itests/cudasim
SIM_DEVICE = $(patsubst tests/cudasim/%.cpp,$B/sim/device/%.o,\
             $(filter-out tests/cudasim/self%,$(wildcard tests/cudasim/*.cpp)))

sim: all $(SIM)/libpp_cuda_f32.a $(SIM)/libpp_cuda_bf16.a $B/sim/bin/pipec

$B/sim/bin/pipec: $B/bin/pipec $(LIB)/pprun $(LIB)/pp.h
	@mkdir -p $(@D) $(SIM)
	cp $(LIB)/pprun $(LIB)/pp.h $(LIB)/libpp.a $(SIM)/
	cp $< $@

$(SIM)/libpp_cuda_f32.a: $(CUDA_HOST) $(SIM_DEVICE) $(CUDA:%=$B/sim/f32/%.o)
$(SIM)/libpp_cuda_bf16.a: $(CUDA_HOST) $(SIM_DEVICE) $(CUDA:%=$B/sim/bf16/%.o)
$(SIM)/libpp_cuda_%.a: $B/objects
	@mkdir -p $(@D)
	rm -f $@
	ar rcs $@ $(filter %.o,$^)

$B/sim/flags: FORCE
	@echo $(call quoted,$(SIM_FLAGS)) | $(SAVE)

$B/sim/f32/%.o: runtime/cuda/%.cu $B/sim/flags
	@mkdir -p $(@D)
	@g++ $(SIM_FLAGS) -MMD -MP -include cuda_runtime.h -x c++ -c $< -o $@

$B/sim/bf16/%.o: runtime/cuda/%.cu $B/sim/flags
	@mkdir -p $(@D)
	@g++ $(SIM_FLAGS) -MMD -MP -DPP_BF16 -include cuda_runtime.h -x c++ -c $< -o $@

$B/sim/device/%.o: tests/cudasim/%.cpp $B/sim/flags
	@mkdir -p $(@D)
	@g++ $(SIM_FLAGS) -MMD -MP -c $< -o $@

$B/sim/self: $(SIM_DEVICE) $(patsubst tests/cudasim/%.cpp,$B/sim/device/%.o,$(wildcard tests/cudasim/self*.cpp))
	g++ -o $@ $^ -ldnnl -lgomp -lm

# The CPU's kernels under other names, to compare with in one program.
$B/sim/libcpu.a: $(KERNELS)
	@rm -rf $B/sim/cpu && mkdir -p $B/sim/cpu
	cp $(filter-out %/device.o,$(KERNELS)) $B/sim/cpu/
	nm --defined-only $B/sim/cpu/*.o | awk '$$3 ~ /^pp_/ {print $$3, "cpu_" $$3}' > $B/sim/cpu/names
	for o in $B/sim/cpu/*.o; do objcopy --redefine-syms=$B/sim/cpu/names $$o || exit 1; done
	rm -f $@
	ar rcs $@ $B/sim/cpu/*.o

SIM_KERNELS = $(filter-out host nccl pinned,$(CUDA))

$B/sim/kernels_%: tests/cuda/kernels.cu $B/sim/libcpu.a $(SIM)/libpp_cuda_f32.a $(SIM)/libpp_cuda_bf16.a
	@g++ $(SIM_FLAGS) $(if $(filter bf16,$*),-DPP_BF16) -include cuda_runtime.h -x c++ $< -x none \
	    $(SIM_KERNELS:%=$B/sim/$*/%.o) $(SIM_DEVICE) $B/sim/libcpu.a -o $@ -ldnnl -lgomp -lm

# ---- programs of tests/gpu-test, for a real GPU ----

GPU_ARCH = 90
$B/gpu/kernels_%: tests/cuda/kernels.cu $B/sim/libcpu.a $(LIB)/libpp_cuda_f32.a $(LIB)/libpp_cuda_bf16.a
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O3 -arch=sm_$(GPU_ARCH) $(if $(filter bf16,$*),-DPP_BF16) $< \
	    $(SIM_KERNELS:%=$B/cuda/$*/%.o) $B/sim/libcpu.a -o $@ -lcublasLt -ldnnl -lgomp

$B/gpu/self_nccl: tests/cuda/self_nccl.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++20 -O2 -arch=sm_$(GPU_ARCH) $< -o $@ -lnccl
