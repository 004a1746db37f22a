# Everything is built by Meson; this file only names the things people want.
PREFIX ?= /usr/local
BUILD := build

.PHONY: all deps demo test test-all check interop bench install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) shipped programs
	@ln -sfn tools/nonic $(BUILD)/nonic
	@ln -sfn verbs/libibverbs.so.1 $(BUILD)/libibverbs.so.1

$(BUILD)/build.ninja:
	@dev/install-packages build
	@meson setup -Db_lto=true $(BUILD)

deps:
	@dev/install-packages build test demo bench

demo:
	@dev/install-packages build demo
	@$(MAKE) --no-print-directory all
	@dev/demo

test:
	@dev/install-packages build demo test
	@dev/test quick

test-all:
	@dev/install-packages build demo test interop
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

install: all
	install -D -m 755 $(BUILD)/tools/nonic $(DESTDIR)$(PREFIX)/bin/nonic
	install -D -m 755 $(BUILD)/verbs/libibverbs.so.1 $(DESTDIR)$(PREFIX)/lib/nonic/libibverbs.so.1
	install -D -m 755 $(BUILD)/tools/nonic-connections $(DESTDIR)$(PREFIX)/lib/nonic/nonic-connections
	install -D -m 755 $(BUILD)/tools/nonic-feroce-receive \
	    $(DESTDIR)$(PREFIX)/lib/nonic/nonic-feroce-receive
	install -D -m 755 $(BUILD)/tools/nonic-mpi.so $(DESTDIR)$(PREFIX)/lib/nonic/nonic-mpi.so
	install -D -m 644 docs/man/nonic.1 $(DESTDIR)$(PREFIX)/share/man/man1/nonic.1
	install -D -m 644 docs/man/nonic-feroce.1 $(DESTDIR)$(PREFIX)/share/man/man1/nonic-feroce.1

clean:
	rm -rf $(BUILD) build-*
