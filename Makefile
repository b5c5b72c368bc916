# pipec: `make demo` trains a small GPT on this machine, `make test` runs every test.
#
#   build/bin/pipec        the compiler
#   build/lib/pipec/       what its programs need: libpp.a pp.h pprun
#
# Every goal uses all cores; `make -j1` does not. The rules of tests and of the simulated GPU: tests/rules.mk.

VERSION = 0.1.0
PREFIX = /usr/local
CC = cc
WARN = -Wall -Wextra -Werror
CFLAGS = -O2 -g
KERNEL_CFLAGS = -O3 -march=native -mprefer-vector-width=512 -ffp-contract=fast -fno-math-errno -fopenmp-simd
LIBS = -ldnnl -lgomp -lm
NVCC = nvcc
CUDA_ARCHS = 80 90 100
NVCC_FLAGS = -std=c++20 -O3 $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
             -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# For a script, which may call make: variables of the command line, but not our jobs.
SH = MAKEFLAGS='$(if $(MAKEOVERRIDES),-- $(MAKEOVERRIDES))' sh

B = build
LIB = $B/lib/pipec
SCHEDULES = $(basename $(notdir $(sort $(wildcard compiler/order/schedules/*.c))))
COMPILER = $(patsubst compiler/%.c,$B/compiler/%.o,$(wildcard compiler/*.c compiler/*/*.c compiler/*/*/*.c)) \
           $B/grammar/pipe_parse.o $B/grammar/pipe_lex.o $B/grammar/schedules.o
PASSES = $(filter-out $B/compiler/drive/main.o,$(COMPILER))
HOST = $(addprefix $B/runtime/,job.o data.o save.o look.o shown.o random.o local/shared.o local/memory.o)
KERNELS = $(patsubst runtime/%.c,$B/runtime/%.o,$(filter-out %/host.c,$(wildcard runtime/cpu/*.c)))
RUNTIME = $(HOST) $(KERNELS) $B/runtime/cpu/host.o $(addprefix $B/runtime/local/,local.o norm.o emulate.o)
LAUNCHER = $(addprefix $B/runtime/,launch.o progress.o trace.o shown.o)
CUDA = $(basename $(notdir $(wildcard runtime/cuda/*.cu)))
CUDA_HOST = $(HOST) $B/runtime/cuda/bridge.o $B/runtime/cuda/rendezvous.o
COMPILE = @echo "  cc $<"; $(CC) -std=c11 $(CFLAGS) $(WARN) -MMD -MP -c -o $@ $<
PIPEC_FLAGS = -D_GNU_SOURCE -Icompiler -Igrammar -I$B/grammar

all: $B/bin/pipec $(LIB)/libpp.a $(LIB)/pprun $(LIB)/pp.h

packages:
	@sh ./packages.sh

demo: packages
	@$(MAKE) --no-print-directory all
	@$(SH) examples/demo.sh

test: packages
	@$(MAKE) --no-print-directory all
	@$(SH) tests/run

bless: all
	@$(SH) tests/run --bless

bench: packages
	@$(MAKE) --no-print-directory all $(addprefix $B/bench/,kernel plan search vee)
	@$(SH) bench/run
	@$(SH) bench/emulate
	@$(SH) bench/deferred
	@$B/bench/plan
	@$B/bench/search
	@$B/bench/vee 0.2

soak: packages
	@$(MAKE) --no-print-directory all
	@$(SH) tests/soak

peers: packages
	@$(MAKE) --no-print-directory all
	@$(SH) tests/peers

clean:
	rm -rf $B out

# ---- install: these, as they lie below build, and two more; uninstall removes them and nothing else ----

TO = $(DESTDIR)$(PREFIX)
INSTALLED_PROGRAMS = bin/pipec lib/pipec/pprun
INSTALLED_FILES = lib/pipec/libpp.a lib/pipec/pp.h
INSTALLED_CUDA = lib/pipec/libpp_cuda_f32.a lib/pipec/libpp_cuda_bf16.a

install: all
	for f in $(INSTALLED_PROGRAMS); do install -D $B/$$f $(TO)/$$f || exit 1; done
	for f in $(INSTALLED_FILES) $(patsubst $B/%,%,$(wildcard $(INSTALLED_CUDA:%=$B/%))); do \
	    install -D -m 644 $B/$$f $(TO)/$$f || exit 1; done
	install -D -m 644 runtime/pp.h $(TO)/include/pp.h
	install -D -m 644 docs/pipec.1 $(TO)/share/man/man1/pipec.1

uninstall:
	rm -f $(addprefix $(TO)/,$(INSTALLED_PROGRAMS) $(INSTALLED_FILES) $(INSTALLED_CUDA) \
	    include/pp.h share/man/man1/pipec.1)
	! [ -d $(TO)/lib/pipec ] || rmdir --ignore-fail-on-non-empty $(TO)/lib/pipec

# ---- what changes only when its text does: whatever depends on it is made again then ----

SAVE = { mkdir -p $(@D) && cat > $@.new && if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi; }
quoted = '$(subst ','\'',$(strip $1))'

$B/flags: FORCE
	@echo $(call quoted,$(CC) $(CFLAGS) $(WARN) $(KERNEL_CFLAGS) $(PIPEC_FLAGS)) | $(SAVE)

$B/version: FORCE
	@echo $(VERSION) | $(SAVE)

# A file that comes or goes changes what is linked.
$B/objects: FORCE
	@echo $(COMPILER) $(RUNTIME) $(LAUNCHER) $(CUDA) | $(SAVE)

# A schedule is known by its file: this list is the only registration.
$B/grammar/schedules.c: FORCE
	@mkdir -p $(@D)
	@{ echo '#include "compile.h"'; \
	  for s in $(SCHEDULES); do echo "extern const Schedule schedule_$$s;"; done; \
	  echo 'const Schedule *const schedules[] = {'; \
	  for s in $(SCHEDULES); do echo "    &schedule_$$s,"; done; \
	  echo '};'; echo 'const int schedule_count = sizeof schedules / sizeof *schedules;'; } | $(SAVE)

# ---- the compiler ----

$B/bin/pipec: $(COMPILER) $B/objects
	@mkdir -p $(@D)
	@echo "  ld $@"; $(CC) $(CFLAGS) -o $@ $(COMPILER) -lm

# The passes without main, for the tests that call them.
$B/libpipec.a: $(PASSES) $B/objects
	@rm -f $@; ar rcs $@ $(PASSES)

$B/compiler/%.o: compiler/%.c $B/grammar/pipe_parse.h $B/grammar/pipe_lex.h $B/flags
	@mkdir -p $(@D)
	$(COMPILE) $(PIPEC_FLAGS)

VERSIONED = $(addprefix $B/compiler/,drive/main.o drive/manual.o program/job.o)
$(VERSIONED): $B/version
$(VERSIONED): PIPEC_FLAGS += -DPIPEC_VERSION='"$(VERSION)"'

$B/grammar/pipe_parse.c $B/grammar/pipe_parse.h &: grammar/pipe.y
	@mkdir -p $(@D)
	bison -Wall -Werror -o $B/grammar/pipe_parse.c --defines=$B/grammar/pipe_parse.h $<

$B/grammar/pipe_lex.c $B/grammar/pipe_lex.h &: grammar/pipe.l
	@mkdir -p $(@D)
	flex -o $B/grammar/pipe_lex.c --header-file=$B/grammar/pipe_lex.h $<

$B/grammar/%.o: $B/grammar/%.c $B/grammar/pipe_parse.h $B/grammar/pipe_lex.h $B/flags
	$(COMPILE) $(PIPEC_FLAGS)

# The script and the style of the HTML picture as arrays of bytes.
$B/grammar/picture_page.h: compiler/show/picture.css compiler/show/picture.js Makefile
	@mkdir -p $(@D)
	@{ for f in css js; do echo "static const char picture_$$f[] = {"; \
	  od -An -v -tu1 compiler/show/picture.$$f | sed 's/[0-9][0-9]*/&,/g'; echo '0};'; done; } > $@

$B/compiler/show/picture_html.o: $B/grammar/picture_page.h

# ---- the runtime ----

$(LIB)/libpp.a: $(RUNTIME) $B/objects
	@mkdir -p $(@D)
	@echo "  ar $@"; rm -f $@; ar rcs $@ $(RUNTIME)

$(LIB)/pprun: $(LAUNCHER) $B/objects
	@mkdir -p $(@D)
	@echo "  ld $@"; $(CC) $(CFLAGS) -o $@ $(LAUNCHER) -lm

$(LIB)/pp.h: runtime/pp.h
	@mkdir -p $(@D)
	cp $< $@

$B/runtime/cpu/%.o: runtime/cpu/%.c $B/flags
	@mkdir -p $(@D)
	$(COMPILE) -D_GNU_SOURCE $(KERNEL_CFLAGS)

$B/runtime/%.o: runtime/%.c $B/flags
	@mkdir -p $(@D)
	$(COMPILE) -D_GNU_SOURCE

# ---- CUDA: the kernels and the host side of a rank, by nvcc, for two dtypes ----

cuda: all $(LIB)/libpp_cuda_f32.a $(LIB)/libpp_cuda_bf16.a

$B/cuda/flags: FORCE
	@echo $(call quoted,$(NVCC) $(NVCC_FLAGS)) | $(SAVE)

# What ptxas says of registers and spills stays beside each object.
NVCC_COMPILE = $(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -Xptxas -v -c $< -o $@

$B/cuda/f32/%.o: runtime/cuda/%.cu $B/cuda/flags
	@mkdir -p $(@D)
	$(NVCC_COMPILE) 2> $@.log || { cat $@.log; exit 1; }

$B/cuda/bf16/%.o: runtime/cuda/%.cu $B/cuda/flags
	@mkdir -p $(@D)
	$(NVCC_COMPILE) -DPP_BF16 2> $@.log || { cat $@.log; exit 1; }

$(LIB)/libpp_cuda_f32.a: $(CUDA_HOST) $(CUDA:%=$B/cuda/f32/%.o)
$(LIB)/libpp_cuda_bf16.a: $(CUDA_HOST) $(CUDA:%=$B/cuda/bf16/%.o)
$(LIB)/libpp_cuda_%.a: $B/objects
	rm -f $@
	ar rcs $@ $(filter %.o,$^)

include tests/rules.mk
-include $(wildcard $B/*/*.d $B/*/*/*.d $B/*/*/*/*.d)

.PHONY: all packages demo test bless bench soak peers install uninstall clean cuda FORCE
.DELETE_ON_ERROR:
