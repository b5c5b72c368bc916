# pipec: `make demo` trains a small GPT on this machine, `make test` runs every test.
#
#   build/bin/pipec        the compiler
#   build/lib/pipec/       what its programs need: libpp.a pp.h pprun

VERSION = 0.1.0
PREFIX = /usr/local
CC = cc
WARN = -Wall -Wextra -Werror
CFLAGS = -O2 -g
KERNEL_CFLAGS = -O3 -march=native -mprefer-vector-width=512 -ffp-contract=fast -fno-math-errno -fopenmp-simd
LIBS = -ldnnl -lgomp -lm

B = build
LIB = $B/lib/pipec
SCHEDULES = $(basename $(notdir $(sort $(wildcard compiler/order/schedules/*.c))))
COMPILER = $(patsubst compiler/%.c,$B/compiler/%.o,$(wildcard compiler/*.c compiler/*/*.c compiler/*/*/*.c)) \
           $B/grammar/pipe_parse.o $B/grammar/pipe_lex.o $B/grammar/schedules.o
PASSES = $(filter-out $B/compiler/drive/main.o,$(COMPILER))
HOST = $(addprefix $B/runtime/,job.o data.o save.o random.o local/shared.o)
KERNELS = $(patsubst runtime/%.c,$B/runtime/%.o,$(filter-out %/host.c,$(wildcard runtime/cpu/*.c)))
RUNTIME = $(HOST) $(KERNELS) $B/runtime/cpu/host.o $(addprefix $B/runtime/local/,local.o norm.o emulate.o)
LAUNCHER = $(addprefix $B/runtime/,launch.o progress.o trace.o)
COMPILE = @echo "  cc $<"; $(CC) -std=c11 $(CFLAGS) $(WARN) -MMD -MP -c -o $@ $<
PIPEC_FLAGS = -D_GNU_SOURCE -DPIPEC_VERSION='"$(VERSION)"' -Icompiler -Igrammar -I$B/grammar

all: $B/bin/pipec $(LIB)/libpp.a $(LIB)/pprun $(LIB)/pp.h

packages:
	@sh ./packages.sh

demo: packages
	@$(MAKE) --no-print-directory all
	@sh examples/demo.sh

test: packages
	@$(MAKE) --no-print-directory all
	@sh tests/run

bless: all
	@sh tests/run --bless

bench: packages
	@$(MAKE) --no-print-directory all
	@sh bench/run
	@sh bench/emulate
	@sh bench/deferred
	@$(MAKE) --no-print-directory $B/bench/plan $B/bench/search $B/bench/vee
	@$B/bench/plan
	@$B/bench/search
	@$B/bench/vee 0.2

gpu-test:
	@$(MAKE) --no-print-directory all
	@sh tests/gpu-test

soak: packages
	@$(MAKE) --no-print-directory all
	@sh tests/soak

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pipec $(DESTDIR)$(PREFIX)/include
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install $B/bin/pipec $(DESTDIR)$(PREFIX)/bin/pipec
	install $(LIB)/pprun $(DESTDIR)$(PREFIX)/lib/pipec/pprun
	install -m 644 $(LIB)/libpp.a $(LIB)/pp.h $(DESTDIR)$(PREFIX)/lib/pipec/
	$(if $(wildcard $(LIB)/libpp_cuda_*.a),install -m 644 $(wildcard $(LIB)/libpp_cuda_*.a) $(DESTDIR)$(PREFIX)/lib/pipec/)
	install -m 644 runtime/pp.h $(DESTDIR)$(PREFIX)/include/pp.h
	install -m 644 docs/pipec.1 $(DESTDIR)$(PREFIX)/share/man/man1/pipec.1

clean:
	rm -rf $B out

$B/bin/pipec: $(COMPILER)
	@mkdir -p $(@D)
	@echo "  ld $@"; $(CC) $(CFLAGS) -o $@ $(COMPILER) -lm

# The passes without main, for the tests that call them.
$B/libpipec.a: $(PASSES)
	@rm -f $@; ar rcs $@ $(PASSES)

$(LIB)/libpp.a: $(RUNTIME)
	@mkdir -p $(@D)
	@echo "  ar $@"; rm -f $@; ar rcs $@ $(RUNTIME)

$(LIB)/pprun: $(LAUNCHER)
	@mkdir -p $(@D)
	@echo "  ld $@"; $(CC) $(CFLAGS) -o $@ $(LAUNCHER) -lm

$(LIB)/pp.h: runtime/pp.h
	@mkdir -p $(@D)
	cp $< $@

$B/compiler/%.o: compiler/%.c $B/grammar/pipe_parse.h $B/grammar/pipe_lex.h
	@mkdir -p $(@D)
	$(COMPILE) $(PIPEC_FLAGS)

$B/grammar/pipe_parse.c $B/grammar/pipe_parse.h &: grammar/pipe.y
	@mkdir -p $(@D)
	bison -Wall -Werror -o $B/grammar/pipe_parse.c --defines=$B/grammar/pipe_parse.h $<

$B/grammar/pipe_lex.c $B/grammar/pipe_lex.h &: grammar/pipe.l
	@mkdir -p $(@D)
	flex -o $B/grammar/pipe_lex.c --header-file=$B/grammar/pipe_lex.h $<

# A schedule is known by its file: this list is the only registration.
$B/grammar/schedules.c: $(wildcard compiler/order/schedules/*.c) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "compile.h"'; \
	  for s in $(SCHEDULES); do echo "extern const Schedule schedule_$$s;"; done; \
	  echo 'const Schedule *const schedules[] = {'; \
	  for s in $(SCHEDULES); do echo "    &schedule_$$s,"; done; \
	  echo '};'; echo 'const int schedule_count = sizeof schedules / sizeof *schedules;'; } > $@

$B/grammar/%.o: $B/grammar/%.c $B/grammar/pipe_parse.h $B/grammar/pipe_lex.h
	$(COMPILE) $(PIPEC_FLAGS)

# The script and the style of the HTML picture as arrays of bytes.
$B/grammar/picture_page.h: compiler/show/picture.css compiler/show/picture.js Makefile
	@mkdir -p $(@D)
	@{ for f in css js; do echo "static const char picture_$$f[] = {"; \
	  od -An -v -tu1 compiler/show/picture.$$f | sed 's/[0-9][0-9]*/&,/g'; echo '0};'; done; } > $@

$B/compiler/show/picture_html.o: $B/grammar/picture_page.h

$B/runtime/cpu/%.o: runtime/cpu/%.c
	@mkdir -p $(@D)
	$(COMPILE) -D_GNU_SOURCE $(KERNEL_CFLAGS)

$B/runtime/%.o: runtime/%.c
	@mkdir -p $(@D)
	$(COMPILE) -D_GNU_SOURCE

# ---- CUDA: the kernels and the host side of a rank, by nvcc, for two dtypes ----

NVCC = nvcc
CUDA_ARCHS = 80 90 100
NVCC_FLAGS = -std=c++20 -O3 $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
             -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror
CUDA = $(basename $(notdir $(wildcard runtime/cuda/*.cu)))
CUDA_HOST = $(HOST) $B/runtime/cuda/bridge.o $B/runtime/cuda/rendezvous.o

cuda: all $(LIB)/libpp_cuda_f32.a $(LIB)/libpp_cuda_bf16.a

$(LIB)/libpp_cuda_f32.a: $(CUDA_HOST) $(CUDA:%=$B/cuda/f32/%.o)
	rm -f $@
	ar rcs $@ $^

$(LIB)/libpp_cuda_bf16.a: $(CUDA_HOST) $(CUDA:%=$B/cuda/bf16/%.o)
	rm -f $@
	ar rcs $@ $^

# What ptxas says of registers and spills stays beside each object.
$B/cuda/f32/%.o: runtime/cuda/%.cu $(wildcard runtime/cuda/*.cuh) runtime/pp.h
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -Xptxas -v -c $< -o $@ 2> $@.log || { cat $@.log; exit 1; }

$B/cuda/bf16/%.o: runtime/cuda/%.cu $(wildcard runtime/cuda/*.cuh) runtime/pp.h
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -DPP_BF16 -Xptxas -v -c $< -o $@ 2> $@.log || { cat $@.log; exit 1; }

# ---- the same against a simulated device, for the tests: see tests/cudasim/README ----

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
	@mkdir -p $(@D)
	rm -f $@
	ar rcs $@ $^

$(SIM)/libpp_cuda_bf16.a: $(CUDA_HOST) $(SIM_DEVICE) $(CUDA:%=$B/sim/bf16/%.o)
	@mkdir -p $(@D)
	rm -f $@
	ar rcs $@ $^

$B/sim/f32/%.o: runtime/cuda/%.cu
	@mkdir -p $(@D)
	@g++ $(SIM_FLAGS) -MMD -MP -include cuda_runtime.h -x c++ -c $< -o $@

$B/sim/bf16/%.o: runtime/cuda/%.cu
	@mkdir -p $(@D)
	@g++ $(SIM_FLAGS) -MMD -MP -DPP_BF16 -include cuda_runtime.h -x c++ -c $< -o $@

$B/sim/device/%.o: tests/cudasim/%.cpp
	@mkdir -p $(@D)
	@g++ $(SIM_FLAGS) -MMD -MP -c $< -o $@

$B/sim/self: $(SIM_DEVICE) $(patsubst tests/cudasim/%.cpp,$B/sim/device/%.o,$(wildcard tests/cudasim/self*.cpp))
	g++ -o $@ $^ -ldnnl -lgomp -lm

# The CPU's kernels under other names, to compare with in one program.
$B/sim/libcpu.a: $(KERNELS)
	@mkdir -p $B/sim/cpu
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

# ---- tests and benchmarks ----

DOUBLE = $(patsubst runtime/cpu/%.c,$B/double/%.o,$(filter-out %/device.c %/host.c %/optimizer.c,\
         $(wildcard runtime/cpu/*.c)))
TEST_C = $(CC) -std=c11 $(CFLAGS) $(WARN) -MMD -MP -o $@

$B/double/%.o: runtime/cpu/%.c
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

$B/tests/%: tests/%.c $B/libpipec.a
	@mkdir -p $(@D)
	$(TEST_C) $(PIPEC_FLAGS) -Itests $< $B/libpipec.a -lm

$B/bench/kernel: bench/kernel.c $(KERNELS) $B/runtime/random.o
	@mkdir -p $(@D)
	$(TEST_C) $< $(KERNELS) $B/runtime/random.o $(LIBS)

$B/bench/%: bench/%.c tests/plan.h tests/search/published.h $B/libpipec.a
	@mkdir -p $(@D)
	$(TEST_C) $(PIPEC_FLAGS) -Itests $< $B/libpipec.a -lm

-include $(wildcard $B/*/*.d $B/*/*/*.d $B/*/*/*/*.d)

.PHONY: all packages demo test bless bench soak install clean cuda sim gpu-test
.DELETE_ON_ERROR:
