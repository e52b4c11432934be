# The front door. `make help` lists what it does; every target sets up what is missing first.
#
# Variables: BUILD=debug uses another preset than release; ARGS='-R Window' is passed on to ctest,
# or to the benchmarks; SHORT=1 leaves out most of what `make sanitize` does under ASan.
SHELL := /bin/bash
BUILD ?= release
JOBS ?= $(shell nproc)
CTEST = ctest --output-on-failure --parallel $(JOBS) --no-tests=error

.DEFAULT_GOAL := build
.PHONY: build demo test consul-facts servers bench torture torture-redis torture-etcd \
        differential sanitize mutants format install setup help test-consul test-debian13 \
        test-etcd clean packages simulate

## build everything, tests too, into build/release (what `make` alone does)
build: build/$(BUILD)/build.ninja
	@cmake --build build/$(BUILD)

## watch real processes sell the last ticket once, and stop calling a dead gateway; ARGS='--seed 7'
demo: build/release/build.ninja
	@cmake --build build/release --target trinco
	@build/release/trinco demo $(ARGS)

## run all tests but those of consul-facts; ARGS='-R Window' picks some
test: build
	@scripts/servers || true
	@$(CTEST) --test-dir build/$(BUILD) --label-exclude facts $(ARGS)

## what is relied on of Consul, seen again on servers that end, are lost and begin again
consul-facts: build
	@scripts/servers || true
	@$(CTEST) --test-dir build/$(BUILD) --label-regex facts $(ARGS)

## locks on etcd at length: on 3.4 to 3.6, with 10,000 waiting locks, over 2,000 random histories
test-etcd: build
	@scripts/servers || true
	@for program in build/$(BUILD)/tests/store/etcd/*_realtime_test \
	    build/$(BUILD)/tests/contract/lock_etcd_realtime_test; do \
	    echo "== $$program"; \
	    TRINCO_ETCD_LONG=1 TRINCO_ETCD_WAITERS=10000 $$program --gtest_brief=1 $(ARGS) || exit 1; \
	done
	@TRINCO_ETCD_SEEDS=2000 build/$(BUILD)/tests/store/etcd/etcd_random_test $(ARGS)
	@TRINCO_SEEDS=2000 build/$(BUILD)/tests/sim/lock_sim_test \
	    --gtest_filter='LockSim.OnEtcd*' $(ARGS)

## locks on Consul at length: on a real one, and over 2,000 random histories
test-consul: consul-facts
	@scripts/servers || true
	@for program in build/$(BUILD)/tests/store/consul/*_realtime_test \
	    build/$(BUILD)/tests/contract/lock_consul_realtime_test; do \
	    echo "== $$program"; \
	    TRINCO_CONSUL_LONG=1 $$program --gtest_brief=1 $(ARGS) || exit 1; \
	done
	@TRINCO_CONSUL_SEEDS=2000 build/$(BUILD)/tests/store/consul/consul_random_test $(ARGS)
	@TRINCO_SEEDS=2000 build/$(BUILD)/tests/sim/lock_sim_test \
	    --gtest_filter='LockSim.OnConsul*' $(ARGS)

# The longest first.
SIMULATIONS := fleet_start lock_sim fleet_one_bad fleet_chaos fleet_forgets fleet_probes \
               fleet_recovers

## the simulated fleets and locks of `make test` over 10,000 seeds each; SEEDS=100000
simulate: build/release/build.ninja
	@cmake --build build/release --target $(SIMULATIONS:%=%_test)
	@printf '%s\n' $(SIMULATIONS:%=build/release/tests/sim/%_test) | xargs -P $(JOBS) -I{} \
	    env TRINCO_SEEDS=$(or $(SEEDS),10000) {} --gtest_brief=1 $(ARGS)

## fetch the servers that only tests need (Redis, Valkey, etcd, Consul) into a cache
servers:
	@scripts/servers

## measure the breaker's hot path and what stores cost (nothing else should run meanwhile)
bench: build/release/build.ninja
	@scripts/servers || true
	@cmake --build build/release --target benchmarks
	@for program in build/release/bench/*_bench; do \
	    echo "== $$program"; $$program $(ARGS) || exit 1; \
	done
	@child=build/release/tests/redis_fleet/fleet_child; [[ ! -x $$child ]] || \
	    { echo '== bench/redis_trip.py'; python3 -B bench/redis_trip.py $$child; }

## kill and pause twenty processes of one local: file for ten minutes; SECONDS=60 for one
torture: build/release/build.ninja
	@cmake --build build/release --target torture
	@python3 -B tests/torture/torture.py build/release/trinco \
	    build/release/tests/torture/torture_child $(if $(SECONDS),--seconds $(SECONDS))

REDIS_FLEET = python3 -B tests/redis_fleet/redis_fleet.py \
              build/release/tests/redis_fleet/fleet_child \
              build/release/tests/store/redis/server_fleet

## the fleet's breaker on real servers that are killed, paused and denied; SECONDS=60 for each check
torture-redis: build/release/build.ninja
	@scripts/servers || true
	@cmake --build build/release --target torture_redis
	@$(REDIS_FLEET) --seconds $(or $(SECONDS),60) $(ARGS) || (($$? == 77))
ifndef ARGS
	@$(REDIS_FLEET) --plant all --together 4 || (($$? == 77))
	@for program in breaker_redis_realtime_test breaker_redis_fleet_realtime_test; do \
	    echo "== $$program"; \
	    TRINCO_REDIS_LONG=1 build/release/tests/contract/$$program --gtest_brief=1 || exit 1; \
	done
endif

## holders of locks on three nodes of etcd, killed, paused and cut off; SECONDS=60; ARGS='--seed 7'
torture-etcd: build/release/build.ninja
	@scripts/servers || true
	@cmake --build build/release --target torture_etcd
	@for plant in '--seconds 180 --plant careless' '--seconds $(or $(SECONDS),60)'; do \
	    python3 -B tests/etcd_fleet/etcd_fleet.py build/release/trinco \
	        build/release/tests/etcd_fleet/belief_child $$plant $(ARGS) || (($$? == 77)) || exit 1; \
	done

## compare the scripts of Redis with the record over 102,000 random histories; HISTORIES=N x 3
differential: build/release/build.ninja
	@scripts/servers || true
	@cmake --build build/release --target lua_differential_realtime_test
	@TRINCO_HISTORIES=$(or $(HISTORIES),34000) \
	    build/release/tests/store/redis/lua_differential_realtime_test --gtest_filter='*Scripts*'

# TSan of GCC 12 cannot place its memory where the kernel randomises addresses by over 28 bits.
BITS := $(shell cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
CALM := $(shell (($(BITS) > 28)) && echo setarch -R)

## run the stress tests under TSan, and all tests under ASan and UBSan
sanitize: build/tsan/build.ninja build/asan/build.ninja
	@scripts/servers || true
	@$(CALM) cmake --build build/tsan --target tests_stress
	@$(CALM) $(CTEST) --test-dir build/tsan --label-regex '^stress$$' $(ARGS)
ifdef SHORT
	@cmake --build build/asan --target tests_bytes
	@$(CTEST) --test-dir build/asan --label-regex '^bytes$$' $(ARGS)
else
	@cmake --build build/asan
	@$(CTEST) --test-dir build/asan --label-exclude '^(packaging|tidy)$$' $(ARGS)
endif

## plant each known bug and see that a suite catches it
mutants: build/mutants/build.ninja
	@cmake --build build/mutants --target tests_mutants
	@$(CTEST) --test-dir build/mutants --label-regex '^mutants$$' $(ARGS)

## format all C++ files with clang-format 14
format:
	@scripts/format

## install library and program to /usr/local; DESTDIR=... and PREFIX=... as usual
install: build/$(BUILD)/build.ninja
	@cmake --build build/$(BUILD) --target installed
	@cmake --install build/$(BUILD) --prefix $(or $(PREFIX),/usr/local)

## install the packages that are missing (the other targets do it by themselves)
setup: packages

## the fresh-clone test in a new Debian 13 chroot (needs root)
test-debian13:
	@scripts/setup chroot
	@scripts/chroot trixie -- make test

## remove everything that was built
clean:
	@rm -rf build

## this list
help:
	@awk '/^## / { text = substr($$0, 4); next } \
	      text && /^[a-z0-9-]+:/ { sub(/:.*/, ""); printf "  make %-14s %s\n", $$0, text } \
	      { text = "" }' Makefile

# A preset is read only when its folder is configured; after that the build looks after itself.
build/%/build.ninja: CMakePresets.json | packages
	@mkdir -p build/$*
	@cmake --preset $* >build/$*/configure.log 2>&1 || { cat build/$*/configure.log; exit 1; }
	@touch $@

# Asks dpkg only, unless something is missing.
packages:
	@scripts/setup
