# Everything is built by Meson; this file only names the things people want.
PREFIX ?= /usr/local
BUILD := build
LTO := true

.PHONY: all dev deps demo test test-all check interop bench install uninstall clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) shipped programs
	@ln -sfn tools/nonic $(BUILD)/nonic
	@ln -sfn verbs/libibverbs.so.1 $(BUILD)/libibverbs.so.1

$(BUILD)/build.ninja:
	@dev/install-packages build
	@meson setup -Db_lto=$(LTO) $(BUILD)

# For work on nonic: build-dev is not optimized across files, so that an edit takes a second (HACKING.md).
dev:
	@$(MAKE) --no-print-directory BUILD=build-dev LTO=false all

deps:
	@dev/install-packages build test demo bench

demo:
	@dev/install-packages build demo
	@$(MAKE) --no-print-directory all
	@dev/demo

test:
	@dev/install-packages build demo test hdl
	@dev/test quick

test-all:
	@dev/install-packages build demo test hdl hdl-more interop look remote-disk migration
	@dev/test all

check:
	@dev/check

interop:
	@dev/install-packages build demo interop
	@$(MAKE) --no-print-directory all
	@tests/interop/run

bench:
	@dev/install-packages build demo bench
	@$(MAKE) --no-print-directory all
	@ninja -C $(BUILD) benches
	@bench/run
	@bench/bad-networks

# Nothing that is built knows the prefix, so another one compiles nothing anew.
install: $(BUILD)/build.ninja
	@grep -qs '"name": "prefix", "value": "$(PREFIX)"' $(BUILD)/meson-info/intro-buildoptions.json || \
	    meson configure $(BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(BUILD) shipped
	@meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

uninstall:
	@ninja -C $(BUILD) uninstall

clean:
	rm -rf $(BUILD) build-*
