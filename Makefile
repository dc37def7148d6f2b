.PHONY: setup run test test-all test-weekly test-fast test-newest test-oldest test-google local lint docs bench soak screenshots messages lock sbom

setup:        ; scripts/setup.sh
run: setup    ; scripts/run.sh
local: setup  ; scripts/local.sh
test:         ; scripts/test.sh first
test-all: test
	scripts/test.sh rest
	scripts/test-oldest.sh
	scripts/test-google.sh
test-weekly:
	scripts/test.sh weekly
	scripts/test-newest.sh
test-fast:    ; scripts/test-fast.sh
test-newest:  ; scripts/test-newest.sh
test-oldest:  ; scripts/test-oldest.sh
test-google:  ; scripts/test-google.sh
lint:         ; scripts/lint.sh
docs:         ; scripts/docs.sh
bench:        ; scripts/bench.sh
soak:         ; scripts/soak.sh
screenshots:  ; scripts/screenshots.sh
messages:     ; scripts/messages.sh
lock:         ; scripts/lock.sh
sbom:         ; scripts/sbom.sh
