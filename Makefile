.PHONY: setup run test lint bench screenshots

setup:        ; scripts/setup.sh
run: setup    ; scripts/run.sh
test:         ; scripts/test.sh
lint:         ; scripts/lint.sh
bench:        ; scripts/bench.sh
screenshots:  ; scripts/screenshots.sh
