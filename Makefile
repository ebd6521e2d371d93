# DistMind testbed: `make help` lists the targets, V=1 shows the commands that run.
#
#   build/            programs, archives and objects of the plain build
#   build/asan/       the same under AddressSanitizer and UndefinedBehaviorSanitizer   (SANITIZE=1)
#   build/tsan/       the tests with threads under ThreadSanitizer                     (SANITIZE=thread)
#   build/libfuzzer/  the fuzz targets under libFuzzer, which needs clang              (FUZZER=1)
#
# Sources are found by wildcard, so a new file needs no line here:
#
#   src/{core,harness,backend_sim}/*.c   -> libcore.a, libharness.a, libsim.a; main.c -> distmind-sim
#   src/backend_real/*.c, *.cu           -> libreal.a; main.c -> distmind-real (*.cu where there is nvcc)
#   tests/MODULE/*.c                     -> tests/MODULE, one Criterion program a folder (real: of whole clusters)
#   tests/cluster/NAME.sh                of scripts; those that are tests are named in script_tests
#   tests/rxe/*.c                        -> tests/rxe, run where there are RDMA devices (make check-verbs)
#   tests/device/*.c                     -> device_check
#   tests/bench/bench_NAME.c             -> bench/NAME (real_NAME: with libreal)
#   tests/fuzz/fuzz_NAME.c               -> fuzz/NAME (with tests/fuzz/driver.c, or libFuzzer)

SHELL := /bin/bash
comma := ,
.DEFAULT_GOAL := all
ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
BUILD_ROOT ?= build
SANITIZE ?= 0
FUZZER ?= 0
FUZZ_SECONDS ?= 600
JOBS ?= $(shell nproc)

# ---------------------------------------------------------------------------------------------------------------
# Flags. CFLAGS, CPPFLAGS, LDFLAGS and WERROR are the user's to set; what the code needs stands apart from them.

CFLAGS ?= -O2 -g
WERROR ?= -Werror
PACKAGES := glib-2.0 gsl sqlite3 yajl libzmq libibverbs libefa hwloc
real_packages := libzmq libibverbs libefa hwloc

# -ffp-contract=off: a fused multiply-add would round differently from one compiler to the next, and decisions with it.
compile_flags := -std=gnu17 -ffp-contract=off -fno-omit-frame-pointer $(CFLAGS) \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-missing-field-initializers $(WERROR) \
	-Isrc -D_GNU_SOURCE -DDM_SOURCE_DIR='"$(CURDIR)"' $(CPPFLAGS) $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
link_flags := $(LDFLAGS)
libraries := $(shell pkg-config --libs $(filter-out $(real_packages),$(PACKAGES)) 2>/dev/null) -lm
real_libraries := $(shell pkg-config --libs $(real_packages) 2>/dev/null) -pthread
is_clang := $(findstring clang,$(shell $(CC) --version 2>/dev/null))

BUILD := $(BUILD_ROOT)
ifeq ($(SANITIZE),1)
BUILD := $(BUILD_ROOT)/asan
sanitizers := -fsanitize=address,undefined -fno-sanitize-recover=undefined
compile_flags += -O1 $(sanitizers)
# gcc's two shared sanitizer libraries take each other's report file, and UBSan's reports are lost; static ones do not.
link_flags += $(sanitizers) $(if $(is_clang),,-static-libasan -static-libubsan)
endif
ifeq ($(SANITIZE),thread)
BUILD := $(BUILD_ROOT)/tsan
thread_flags := $(foreach f,$(file <tests/tsan/flags),$(f))
compile_flags += -O1 -Itests/tsan $(thread_flags)
link_flags += -fsanitize=thread
endif
ifeq ($(FUZZER),1)
BUILD := $(BUILD_ROOT)/libfuzzer
compile_flags += -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
link_flags += -fsanitize=fuzzer,address,undefined
endif

# SimGrid, the fair-share solver's yardstick, is optional and speaks C++: benchmarks in C++ are built where it is found.
ifneq ($(shell pkg-config --exists simgrid 2>/dev/null && command -v $(CXX)),)
simgrid_src := $(wildcard tests/bench/bench_*.cpp)
simgrid_libraries := -Wl,--as-needed $(shell pkg-config --libs simgrid) -lstdc++
endif
cxx_flags := $(filter-out -std=% -Wstrict-prototypes,$(compile_flags)) -std=gnu++17 \
	$(shell pkg-config --cflags simgrid 2>/dev/null)

# CUDA, where nvcc is: linked statically (libcudart), so that the program runs where only the driver is. Code for each
# architecture of CUDA_ARCHS that this nvcc still knows (CUDA 13 dropped 70, the V100: p3dn needs 12).
NVCC ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CUDA_ARCHS ?= 70 80 86 89 90 100
ifneq ($(NVCC),)
cuda_known := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
cuda_archs := $(filter $(cuda_known),$(CUDA_ARCHS))
# The last one's intermediate code too: GPUs newer than all of them compile that when the program starts.
cuda_code := $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a)) \
	$(foreach a,$(lastword $(cuda_archs)),-gencode arch=compute_$(a),code=compute_$(a))
nvcc_flags := -std=c++17 -O2 -lineinfo $(cuda_code) -Isrc -Xcompiler -Wall,-Wextra$(if $(WERROR),$(comma)$(WERROR))
cuda_root := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
real_libraries += -L$(cuda_root)/lib64 -lcudart_static -ldl -lrt -lstdc++
compile_flags += -isystem $(cuda_root)/include
endif

# ---------------------------------------------------------------------------------------------------------------
# Sources and what is made of them.

core_src := $(wildcard src/core/*.c)
harness_src := $(wildcard src/harness/*.c)
sim_src := $(filter-out src/backend_sim/main.c,$(wildcard src/backend_sim/*.c))
# Of the CUDA device, what needs nvcc's headers and libraries, or what stands in for it.
cuda_only := $(wildcard src/backend_real/cuda_*.c) src/backend_real/device_cuda.c
real_src := $(filter-out src/backend_real/main.c $(if $(NVCC),src/backend_real/device_cuda_none.c,$(cuda_only)),\
	$(wildcard src/backend_real/*.c))
cuda_src := $(if $(NVCC),$(wildcard src/backend_real/*.cu))
test_modules := $(foreach m,core harness backend_sim backend_real e2e real,$(if $(wildcard tests/$(m)/*.c),$(m)))
# Of tests/cluster, the files that are tests; the others stand in for what they call.
script_tests := $(addprefix tests/cluster/,cluster.sh ec2.sh)
bench_src := $(wildcard tests/bench/bench_*.c) $(simgrid_src)
fuzz_src := $(wildcard tests/fuzz/fuzz_*.c)
all_src := $(core_src) $(harness_src) $(sim_src) $(real_src) $(cuda_src) $(wildcard src/*/main.c) $(wildcard tests/*/*.c tests/*.c) $(simgrid_src)

objects = $(patsubst %,$(BUILD)/obj/%.o,$(basename $(1)))
archives := $(BUILD)/libsim.a $(BUILD)/libreal.a $(BUILD)/libharness.a $(BUILD)/libcore.a
program := $(BUILD)/distmind-sim
real_program := $(BUILD)/distmind-real
device_check := $(BUILD)/device_check
test_programs := $(test_modules:%=$(BUILD)/tests/%)
bench_programs := $(patsubst tests/bench/bench_%,$(BUILD)/bench/%,$(basename $(bench_src)))
fuzz_programs := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(fuzz_src))

# Stamps: files rewritten only when their text changes, so that a change of flags compiles again, and a source file that
# came or went links again, although no file that is left became newer.
define stamp
ifneq ($$(strip $$(file <$(1))),$$(strip $(2)))
$$(shell mkdir -p $$(dir $(1)))
$$(file >$(1),$$(strip $(2)))
endif
endef
$(eval $(call stamp,$(BUILD)/compile.stamp,$$(CC) $$(CXX) $$(compile_flags)))
$(eval $(call stamp,$(BUILD)/link.stamp,$$(CC) $$(link_flags) $$(libraries) $$(real_libraries) $$(simgrid_libraries) $$(all_src)))

ifeq ($(V),1)
quiet :=
say = @:
else
quiet := @
say = @printf '  %-5s %s\n' $(1) $@
endif
needs_packages = $(if $(libraries:-lm=),,$(error libraries are missing: run `make deps`))

# ---------------------------------------------------------------------------------------------------------------
# Programs.

.PHONY: all programs
all: $(program) $(real_program)
programs: $(program) $(real_program) $(test_programs) $(device_check)

$(BUILD)/obj/%.o: %.c $(BUILD)/compile.stamp
	$(needs_packages)
	$(call say,CC)
	@mkdir -p $(@D)
	$(quiet)$(CC) $(compile_flags) $(extra_flags) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.cpp $(BUILD)/compile.stamp
	$(call say,CXX)
	@mkdir -p $(@D)
	$(quiet)$(CXX) $(cxx_flags) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.cu $(BUILD)/compile.stamp
	$(call say,NVCC)
	@mkdir -p $(@D)
	$(quiet)$(NVCC) $(nvcc_flags) -MMD -MP -c $< -o $@

$(BUILD)/libcore.a: $(call objects,$(core_src))
$(BUILD)/libharness.a: $(call objects,$(harness_src))
$(BUILD)/libsim.a: $(call objects,$(sim_src))
$(BUILD)/libreal.a: $(call objects,$(real_src) $(cuda_src))
$(archives): $(BUILD)/link.stamp
	$(call say,AR)
	@rm -f $@
	$(quiet)ar rcs $@ $(filter %.o,$^)

link = $(quiet)mkdir -p $(@D) && $(CC) $(link_flags) $(filter %.o,$^) $(archives) $(libraries) $(1) -o $@

$(program): $(call objects,src/backend_sim/main.c) $(archives) $(BUILD)/link.stamp
	$(call say,LINK)
	$(call link)

$(real_program): $(call objects,src/backend_real/main.c) $(archives) $(BUILD)/link.stamp
	$(call say,LINK)
	$(call link,$(real_libraries))

# Checks and measures a machine's GPUs; one of backend_real's tests runs it on the host device.
$(device_check): $(call objects,$(wildcard tests/device/*.c) tests/backend_real/ends.c) $(archives) $(BUILD)/link.stamp
	$(call say,LINK)
	$(call link,$(real_libraries))

# Tests put a machine with a fake RDMA device in the place of this one (tests/backend_real/srd_fake_machine.c).
fake_machine := -Wl,--wrap=nics_list,--wrap=verbs_srd_open
define test_program
$(BUILD)/tests/$(1): $(call objects,$(wildcard tests/$(1)/*.c)) $(archives) $(BUILD)/link.stamp
	$$(call say,LINK)
	$$(call link,-lcriterion $(if $(filter backend_real e2e,$(1)),$(real_libraries)) $(if $(filter backend_real,$(1)),$$(fake_machine)))
endef
$(foreach m,$(test_modules),$(eval $(call test_program,$(m))))

# Of whole clusters over verbs, with the helpers of tests/real.
rxe_tests := $(BUILD)/tests/rxe
$(rxe_tests): $(call objects,$(wildcard tests/rxe/*.c) $(addprefix tests/real/,cluster.c cut.c outcome_check.c roles.c)) $(archives) $(BUILD)/link.stamp
	$(call say,LINK)
	$(call link,-lcriterion)

# The real backend's tests without Criterion, which ThreadSanitizer leaves no room for.
threads := $(BUILD_ROOT)/tsan/tests/threads
$(threads): $(call objects,$(wildcard tests/backend_real/*.c tests/tsan/*.c)) $(archives) $(BUILD)/link.stamp
	$(call say,LINK)
	$(call link,$(real_libraries) $(fake_machine))
$(call objects,tests/tsan/locks.c): private extra_flags += $(patsubst -D%,-U%,$(foreach f,$(thread_flags),$(firstword $(subst =, ,$(filter -D%,$(f))))))

$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/bench_%.o $(archives) $(BUILD)/link.stamp
	$(call say,LINK)
	$(call link,$(simgrid_libraries) $(if $(findstring real_,$(@F)),$(real_libraries)))

# The benchmark of the control plane is more than one file.
$(BUILD)/bench/real_control: $(call objects,$(addprefix tests/bench/,control_host.c processors.c))

# libFuzzer brings a main of its own.
fuzz_driver := $(if $(filter 1,$(FUZZER)),,$(call objects,$(addprefix tests/fuzz/,driver.c mutate.c corpus.c)))
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(fuzz_driver) $(archives) $(BUILD)/link.stamp
	$(call say,LINK)
	$(call link,-Wl$(comma)--as-needed $(real_libraries))

# Proves that a sanitizer's report is seen: tests/run.sh runs it before it trusts that there was none.
$(BUILD)/tests/canary: $(BUILD)/obj/tests/canary.o $(BUILD)/link.stamp
	$(call say,LINK)
	$(quiet)mkdir -p $(@D) && $(CC) $(link_flags) $(filter %.o,$^) -o $@

# DM_VERSION changes with every commit and DM_DATA_DIR with PREFIX: only the sources that name one of them get this header.
uses_build_info := $(shell grep -lE 'DM_(VERSION|DATA_DIR)' $(all_src) /dev/null 2>/dev/null)
$(call objects,$(uses_build_info)): private extra_flags += -include $(BUILD_ROOT)/build_info.h
$(call objects,$(uses_build_info)): $(BUILD_ROOT)/build_info.h
$(BUILD_ROOT)/build_info.h: FORCE
	@scripts/build_info.sh '$(abspath $(PREFIX))/share/distmind' $@

-include $(patsubst %.o,%.d,$(call objects,$(all_src)))
.SECONDARY:
.PHONY: FORCE
FORCE:

# ---------------------------------------------------------------------------------------------------------------
# Targets for people. Each sets up what it needs, then runs make again: pkg-config answers only once that is installed.

submake = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))
TESTS ?= $(test_modules) scripts threads fuzz
tests_chosen = $(filter $(TESTS),$(test_modules))
threads_chosen = $(if $(filter 1,$(SANITIZE)),,$(if $(filter threads,$(TESTS)),$(threads)))
scripts_chosen = $(if $(filter 1,$(SANITIZE)),,$(if $(filter scripts,$(TESTS)),$(script_tests)))
slurm_chosen = $(if $(filter slurm,$(TESTS)),tests/slurm/sweep.sh)
fuzz_chosen = $(if $(filter fuzz,$(TESTS)),$(patsubst tests/fuzz/fuzz_%.c,$(BUILD_ROOT)/asan/fuzz/%,$(fuzz_src)))

# Several goals at once (`make -j all check`): one that runs make again waits for those that were named before it, or two makes
# would write the same archives.
nested := check check-verbs check-slurm soak demo demo-real paper bench bench-verbs fuzz readme device-bundle
$(foreach goal,$(MAKECMDGOALS),$(if $(filter $(nested),$(goal)),$(eval $(goal): | $(filter-out $(goal),$(named))))$(eval named += $(goal)))

.PHONY: help deps check check-slurm soak demo demo-real bench fuzz lint install clean compile_commands.json
help:
	@echo 'make                 build/distmind-sim and build/distmind-real'
	@echo 'make demo            replay a synthetic trace: the table of the systems compared, and one figure'
	@echo 'make demo-real       the same on real processes, beside the simulator: no GPU or RDMA is needed'
	@echo 'make check           all tests, with every parser fuzzed for 5 s; ends with "N passed, N failed, N skipped"'
	@echo '                     TESTS="core e2e scripts threads fuzz" chooses, FUZZ_CHECK_SECONDS=5, TRACES=FOLDER of real traces'
	@echo 'make check SANITIZE=1  the same under AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make check-verbs     the tests that need RDMA devices, in a virtual machine with Soft-RoCE (needs apt); SANITIZE=1'
	@echo 'make paper           the evaluation of the DistMind paper: results/PAPER.md, data and figures in results/paper; minutes'
	@echo '                     TRACES=FOLDER of real traces; REAL=1: what fits this machine, on real processes (results/paper-real.md)'
	@echo 'make soak            kill, stop, cut of every role, 50 times each; ROUNDS=50, SEED=, SANITIZE=1'
	@echo 'make check-slurm     sweeps on a Slurm cluster of one node, which it starts (root, Debian slurm-wlm and munge)'
	@echo 'make bench           speeds, each beside its yardstick'
	@echo 'make bench-verbs     the verbs transport beside ib_read_bw, in the same virtual machine; PAIRS=5, BYTES=65536'
	@echo 'make fuzz            libFuzzer, FUZZ_SECONDS=600 each target; stops at the first finding'
	@echo 'make lint            format, cppcheck, what src/core may not use, sizes'
	@echo 'make readme          renew the outputs that README.md shows'
	@echo 'make format          clang-format -i, as lint wants it'
	@echo 'make device-bundle   build/device: the programs and the libraries that they load, to run on another Linux'
	@echo 'make install         PREFIX=/usr/local, DESTDIR='
	@echo 'make deps            install what is missing (Debian; done by demo, check, bench, fuzz and lint themselves)'
	@echo 'make clean           remove build/'
	@echo 'CC=clang, V=1, CFLAGS, LDFLAGS and WERROR= are heeded.'

deps:
	@scripts/deps.sh build check

check:
	@scripts/deps.sh build check
	@$(submake) programs
	@$(if $(fuzz_chosen),$(submake) SANITIZE=1 fuzz-programs)
	@$(if $(threads_chosen),$(submake) SANITIZE=thread $(threads) $(BUILD_ROOT)/tsan/tests/canary)
	@$(if $(filter 1,$(SANITIZE)),$(submake) $(BUILD)/tests/canary)
	@BUILD=$(BUILD) SANITIZE=$(SANITIZE) tests/run.sh $(tests_chosen:%=$(BUILD)/tests/%) $(scripts_chosen) $(threads_chosen) $(slurm_chosen) $(fuzz_chosen)

# Sweeps on a Slurm cluster of one node, which is started for it; skipped where that cannot be.
check-slurm:
	@scripts/deps.sh slurm || true
	@$(MAKE) --no-print-directory check TESTS=slurm

# What runs over verbs, in a virtual machine that has RDMA devices.
.PHONY: check-verbs
check-verbs:
	@scripts/deps.sh build check
	@$(submake) $(real_program) $(BUILD)/tests/backend_real $(rxe_tests) $(if $(filter 1,$(SANITIZE)),$(BUILD)/tests/canary)
	@BUILD=$(BUILD) SANITIZE=$(SANITIZE) tests/rxe/check.sh

# Failures of every role at random times: `make check` has a few rounds of each, this has many.
soak:
	@scripts/deps.sh build check
	@$(submake) all $(BUILD)/tests/real
	@BUILD=$(BUILD) SANITIZE=$(SANITIZE) DISTMIND_ROUNDS=$(or $(ROUNDS),50) DISTMIND_SEED=$(SEED) \
	  PROGRAM_LIMIT_S=14400 tests/run.sh $(BUILD)/tests/real

.PHONY: fuzz-programs bench-programs
fuzz-programs: $(fuzz_programs)
bench-programs: $(bench_programs)

demo:
	@scripts/deps.sh build
	@$(submake) all
	@scripts/demo.sh $(program)

demo-real:
	@scripts/deps.sh build
	@$(submake) all
	@scripts/demo_real.sh $(program) $(real_program)

.PHONY: paper
paper:
	@scripts/deps.sh build paper
	@$(submake) all $(BUILD)/bench/real_image
ifeq ($(REAL),1)
	@scripts/paper/real.sh $(program) $(real_program)
else
	@scripts/paper/paper.sh $(program) --jobs $(JOBS)
endif

bench:
	@scripts/deps.sh build
	@scripts/deps.sh bench || echo 'the benchmarks go on without SimGrid or iperf3, optional yardsticks'
	@$(submake) all bench-programs
	@scripts/bench.sh $(program) $(filter-out %/real_verbs,$(bench_programs))

.PHONY: bench-verbs
bench-verbs:
	@scripts/deps.sh build
	@$(submake) $(BUILD)/bench/real_verbs
	@tests/rxe/bench.sh $(BUILD)/bench/real_verbs

fuzz:
	@scripts/deps.sh build fuzz
	@$(submake) CC=clang FUZZER=1 fuzz-programs
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(fuzz_src:tests/fuzz/fuzz_%.c=$(BUILD_ROOT)/libfuzzer/fuzz/%)

.PHONY: readme
readme:
	@scripts/deps.sh build check
	@$(submake) all
	@scripts/readme.sh $(program)

lint:
	@scripts/deps.sh lint
	@scripts/lint.sh

.PHONY: format
format:
	@scripts/deps.sh lint
	clang-format -i $(wildcard src/*/*.[ch] tests/*.[ch] tests/*/*.[ch])

.PHONY: device-bundle
device-bundle:
	@scripts/deps.sh build
	@$(submake) all $(device_check)
	@scripts/device_bundle.sh $(program) $(real_program) $(device_check) $(BUILD)/device

install: all
	install -D -m 755 $(program) $(DESTDIR)$(PREFIX)/bin/distmind-sim
	install -D -m 755 $(real_program) $(DESTDIR)$(PREFIX)/bin/distmind-real
	install -D -m 644 README.md $(DESTDIR)$(PREFIX)/share/doc/distmind/README.md
	install -D -m 644 results/README.md $(DESTDIR)$(PREFIX)/share/doc/distmind/results/README.md
	@for file in $$(find experiments traces -type f); do \
	  install -D -m 644 $$file $(DESTDIR)$(PREFIX)/share/distmind/$$file || exit 1; done
	@for unit in scripts/systemd/*.service; do \
	  install -D -m 644 $$unit $(DESTDIR)$(PREFIX)/share/distmind/systemd/$$(basename $$unit) && \
	  sed -i 's,/usr/local/,$(PREFIX)/,g' $(DESTDIR)$(PREFIX)/share/distmind/systemd/$$(basename $$unit) || exit 1; done
	@echo 'experiments, traces and systemd units are in $(DESTDIR)$(PREFIX)/share/distmind'

clean:
	rm -rf $(BUILD_ROOT)

# For editors and clangd.
compile_commands.json:
	@{ echo '['; separator=; for file in $(all_src); do \
	  printf '%s{"directory":"%s","file":"%s","command":"%s -c %s"}\n' "$$separator" '$(CURDIR)' $$file \
	    '$(subst ",\\\",$(CC) $(subst ',,$(compile_flags)))' $$file; separator=$(comma); done; echo ']'; } > $@
