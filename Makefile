# DistMind testbed: `make help` lists the targets.
SHELL := /bin/bash
BUILD_ROOT ?= build
CC ?= gcc
SANITIZE ?= 0
PKGS := glib-2.0 gsl sqlite3 yajl
CPPFLAGS := -Isrc -D_GNU_SOURCE $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wno-missing-field-initializers
CFLAGS := -std=gnu17 -O2 -g -ffp-contract=off -fno-omit-frame-pointer $(WARN)
LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm
BUILD := $(BUILD_ROOT)
ifeq ($(SANITIZE),1)
BUILD := $(BUILD_ROOT)/asan
CFLAGS += -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
LDFLAGS += -fsanitize=address,undefined
endif

core_src := $(wildcard src/core/*.c)
harness_src := $(wildcard src/harness/*.c)
sim_src := $(filter-out src/backend_sim/main.c,$(wildcard src/backend_sim/*.c))
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
libs_built := $(BUILD)/libharness.a $(BUILD)/libsim.a $(BUILD)/libcore.a
link_libs := $(BUILD)/libsim.a $(BUILD)/libharness.a $(BUILD)/libcore.a

all: $(BUILD)/distmind-sim

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/libcore.a: $(call obj,$(core_src))
$(BUILD)/libharness.a: $(call obj,$(harness_src))
$(BUILD)/libsim.a: $(call obj,$(sim_src))
%.a:
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/distmind-sim: $(call obj,src/backend_sim/main.c) $(libs_built)
	$(CC) $(LDFLAGS) $< $(link_libs) $(LIBS) -o $@

# One Criterion program for each tests/MODULE/ folder: build/tests/MODULE.
test_modules := core harness backend_sim e2e
define test_program
$(BUILD)/tests/$(1): $(call obj,$(wildcard tests/$(1)/*.c)) $(libs_built)
	@mkdir -p $$(@D)
	$(CC) $(LDFLAGS) $$(filter %.o,$$^) $(link_libs) $(LIBS) -lcriterion -o $$@
endef
$(foreach m,$(test_modules),$(if $(wildcard tests/$(m)/*.c),$(eval $(call test_program,$(m)))))

# One program for each tests/bench/bench_NAME.c and tests/fuzz/fuzz_NAME.c (the latter with the plain driver).
$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/bench_%.o $(libs_built)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $< $(link_libs) $(LIBS) $(BENCH_LIBS) -o $@
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/driver.o $(libs_built)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $(filter %.o,$^) $(link_libs) $(LIBS) -o $@

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
.SECONDARY:
.PHONY: all
