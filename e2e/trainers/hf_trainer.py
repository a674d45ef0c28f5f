"""transformers: the Trainer, which makes the loaders of training and evaluation itself, in one helper of its own."""
# library: transformers
#
# case: epoch
#   does: `eval_strategy="epoch"`, a dictionary's column names as features, the best model loaded at the end
#   loader: fit train
#   loader: fit eval
#
# case: steps
#   does: `eval_strategy="steps"`, `gradient_accumulation_steps=2`, an evaluation before and after
#   loader: before eval
#   loader: fit train
#   loader: fit eval
#   loader: after eval
#
# case: predict
#   does: `train()`, then `predict()` on a third set
#   loader: fit train
#   loader: predict eval
#
# case: resume
#   does: one epoch; a second Trainer goes on with `resume_from_checkpoint`
#   loader: fit train
#   loader: fit eval
#   loader: again train
#   loader: again eval
#
# case: stream
#   does: an `IterableDataset` with `max_steps`, split by worker in its `__iter__`
#   loader: fit train
#   loader: fit eval
#
# case: torchrun:2 epoch
#   does: the same as `epoch` under torchrun
#   loader: fit train
#   loader: fit eval
#   check: shard-duplicate-ranks@train clean
import sys
import tempfile

import numpy as np
import torch
from datasets import Dataset
from torch.utils.data import IterableDataset, get_worker_info
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

HOW = sys.argv[1]


def reviews(n, seed):
    """Already tokenized: 12 words of a vocabulary of 60; those below 20 are kind ones."""
    words = np.random.default_rng(seed).integers(0, 60, (n, 12))
    return {"input_ids": words, "attention_mask": np.ones_like(words), "labels": (words < 20).sum(1) // 5}


class Stream(IterableDataset):
    def __iter__(self):
        columns, info = reviews(96, 1), get_worker_info()
        for i in range(info.id, 96, info.num_workers):
            yield {k: torch.as_tensor(v[i]) for k, v in columns.items()}


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def trainer(folder, **more):
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                                                     max_position_embeddings=16, num_labels=3))
    arguments = dict(output_dir=folder, per_device_train_batch_size=8, per_device_eval_batch_size=8, num_train_epochs=2, dataloader_num_workers=2,
                     use_cpu=True, report_to="none", disable_tqdm=True, save_strategy="no", logging_strategy="no", seed=5)
    arguments.update(more)
    train = Stream() if HOW == "stream" else Dataset.from_dict(reviews(96, 1))
    return Trainer(model=model, args=TrainingArguments(**arguments), train_dataset=train, eval_dataset=Dataset.from_dict(reviews(40, 2)),
                   compute_metrics=compute_metrics)


def main():
    folder = tempfile.mkdtemp()
    if HOW == "epoch":
        t = trainer(folder, eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True)
    elif HOW == "steps":
        t = trainer(folder, eval_strategy="steps", eval_steps=3, gradient_accumulation_steps=2)
        print("before", t.evaluate()["eval_accuracy"])  # place: before
    elif HOW == "resume":
        t = trainer(folder, eval_strategy="epoch", save_strategy="epoch", num_train_epochs=1)
    elif HOW == "stream":
        t = trainer(folder, max_steps=20, eval_strategy="steps", eval_steps=10)
    else:
        t = trainer(folder)
    t.train()  # place: fit
    if HOW == "steps":
        print("after", t.evaluate()["eval_accuracy"])  # place: after
    if HOW == "predict":
        print(t.predict(Dataset.from_dict(reviews(24, 3))).metrics)  # place: predict
    if HOW == "resume":
        t = trainer(folder, eval_strategy="epoch", save_strategy="epoch", num_train_epochs=2)
        t.train(resume_from_checkpoint=True)  # place: again


if __name__ == "__main__":
    main()
