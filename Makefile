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
SCHEDULES = $(basename $(notdir $(sort $(wildcard compiler/schedules/*.c))))
COMPILER = $(patsubst compiler/%.c,$B/compiler/%.o,$(wildcard compiler/*.c compiler/schedules/*.c)) \
           $B/grammar/pipe_parse.o $B/grammar/pipe_lex.o $B/grammar/schedules.o
PASSES = $(filter-out $B/compiler/main.o,$(COMPILER))
HOST = $(addprefix $B/runtime/,job.o data.o save.o random.o local/shared.o)
KERNELS = $(patsubst runtime/%.c,$B/runtime/%.o,$(filter-out %/host.c,$(wildcard runtime/cpu/*.c)))
RUNTIME = $(HOST) $(KERNELS) $B/runtime/cpu/host.o $B/runtime/local/local.o
LAUNCHER = $B/runtime/launch.o $B/runtime/progress.o
COMPILE = $(CC) -std=c11 $(CFLAGS) $(WARN) -MMD -MP -c -o $@ $<
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

soak: packages
	@$(MAKE) --no-print-directory all
	@sh tests/soak

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pipec $(DESTDIR)$(PREFIX)/include
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install $B/bin/pipec $(DESTDIR)$(PREFIX)/bin/pipec
	install $(LIB)/pprun $(DESTDIR)$(PREFIX)/lib/pipec/pprun
	install -m 644 $(LIB)/libpp.a $(LIB)/pp.h $(DESTDIR)$(PREFIX)/lib/pipec/
	install -m 644 runtime/pp.h $(DESTDIR)$(PREFIX)/include/pp.h
	install -m 644 docs/pipec.1 $(DESTDIR)$(PREFIX)/share/man/man1/pipec.1

clean:
	rm -rf $B out

$B/bin/pipec: $(COMPILER)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $(COMPILER)

# The passes without main, for the tests that call them.
$B/libpipec.a: $(PASSES)
	rm -f $@
	ar rcs $@ $(PASSES)

$(LIB)/libpp.a: $(RUNTIME)
	@mkdir -p $(@D)
	rm -f $@
	ar rcs $@ $(RUNTIME)

$(LIB)/pprun: $(LAUNCHER)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $(LAUNCHER) -lm

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
$B/grammar/schedules.c: $(wildcard compiler/schedules/*.c) Makefile
	@mkdir -p $(@D)
	{ echo '#include "compile.h"'; \
	  for s in $(SCHEDULES); do echo "extern const Schedule schedule_$$s;"; done; \
	  echo 'const Schedule *const schedules[] = {'; \
	  for s in $(SCHEDULES); do echo "    &schedule_$$s,"; done; \
	  echo '};'; echo 'const int schedule_count = sizeof schedules / sizeof *schedules;'; } > $@

$B/grammar/%.o: $B/grammar/%.c $B/grammar/pipe_parse.h $B/grammar/pipe_lex.h
	$(COMPILE) $(PIPEC_FLAGS)

$B/runtime/cpu/%.o: runtime/cpu/%.c
	@mkdir -p $(@D)
	$(COMPILE) -D_GNU_SOURCE $(KERNEL_CFLAGS)

$B/runtime/%.o: runtime/%.c
	@mkdir -p $(@D)
	$(COMPILE) -D_GNU_SOURCE

# ---- tests and benchmarks ----

DOUBLE = $(patsubst %,$B/double/%.o,linear layernorm activation attention embedding loss)
TEST_C = $(CC) -std=c11 $(CFLAGS) $(WARN) -MMD -MP -o $@

$B/double/%.o: runtime/cpu/%.c
	@mkdir -p $(@D)
	$(COMPILE) $(KERNEL_CFLAGS) -DPP_DOUBLE

$B/tests/kernel/finite_difference: tests/kernel/finite_difference.c $(DOUBLE)
	@mkdir -p $(@D)
	$(TEST_C) $< $(DOUBLE) -lm

$B/tests/kernel/float: tests/kernel/float.c $(KERNELS) $B/runtime/random.o
	@mkdir -p $(@D)
	$(TEST_C) $(KERNEL_CFLAGS) $< $(KERNELS) $B/runtime/random.o $(LIBS)

$B/tests/%: tests/%.c $B/libpipec.a
	@mkdir -p $(@D)
	$(TEST_C) $(PIPEC_FLAGS) -Itests $< $B/libpipec.a -lm

$B/bench/kernel: bench/kernel.c $(KERNELS)
	@mkdir -p $(@D)
	$(TEST_C) $< $(KERNELS) $(LIBS)

-include $(wildcard $B/*/*.d $B/*/*/*.d)

.PHONY: all packages demo test bless bench soak install clean
.DELETE_ON_ERROR:
