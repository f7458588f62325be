"""Wording for a Keras fit."""

from __future__ import annotations

from trainwright.stages import Words

WORDS = Words(
    trainer="fit",
    arguments="fit",
    evaluation_data="validation_data",
    rows_of_index="x[i * size : (i + 1) * size]",
    drop_last="drop_remainder=True",
    pad_arrays='keras.utils.pad_sequences({value}, padding="post"{type})',
    text_layer="a keras.layers.TextVectorization, adapted to the training texts",
    less_memory='keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    smaller_batches="make batches of {rows} rows (batch_size={rows}) and pass gradient_accumulation_steps={steps} to the optimizer",
    memory_growth="call tf.config.experimental.set_memory_growth(gpu, True) for each GPU before the model is built",
    backward="return the loss from compute_loss, and let the optimizer apply its gradients",
    causal_mask="give the attention a causal mask (use_causal_mask=True where the layer is called); a convolution "
    'padding="causal"',
    embedding_rows="input_dim",
    losses={
        "binary_cross_entropy": "binary_crossentropy",
        "binary_cross_entropy_with_logits": "binary_crossentropy with from_logits=True",
    },
    multilabel_loss="binary_crossentropy with from_logits=True",
    given_loss='pass a loss to compile: "sparse_categorical_crossentropy" for class numbers and probabilities, '
    'keras.losses.SparseCategoricalCrossentropy(from_logits=True) for raw scores, "mse" for real targets',
    unlabelled_rows="leave rows without a label out, or give SparseCategoricalCrossentropy ignore_class={label}",
)
