"""Model servers of one's own: memory, crashed engines, models that are still loading."""

from tasks.errors.rule import Rule, either

RULES = (
    # Freed by other requests ending, unless the one allocation is larger than the whole device.
    Rule(code="AI_MODEL_OOM", body=r"^allocation=fits_device$", retryable=True),
    Rule(
        code="AI_MODEL_OOM",
        message=either(
            r"out of memory|OutOfMemory|CUBLAS_STATUS_ALLOC_FAILED|no available memory for the cache",
            r"requires more system memory|larger than the maximum number of tokens that can be stored in KV cache",
            r"failed to allocate .{0,40}(buffer|memory|kv)|(unable|failed) to allocate",
            r"not enough (gpu |system |available )?memory|insufficient (gpu |system )?memory",
            r"less than desired GPU memory|free memory on device|std::bad_alloc|kv cache is (needed|full)|显存不足",
            r"内存不足",
        ),
    ),
    Rule(code="AI_MODEL_OOM", exception=r"\.OutOfMemoryError$"),
    Rule(
        code="AI_MODEL_LOADING",
        message=either(
            r"(model|pipeline|server|endpoint) .{0,80}(is|are) (currently |still )?(loading|starting|initializing",
            r"being loaded|warming)",
            r"(^|['\"])loading model(['\"]|$)|llm server loading model|model is not ready|not ready for inference",
            r"waiting for (llama )?runner to start|model loading|cold start|scaled? to zero",
            r"endpoint is (paused|scaled|not running|initializing)|still (loading|starting)|模型(正在)?加载",
        ),
    ),
    Rule(code="AI_MODEL_LOADING", body=r"(^|\.)estimated_time=[\d.]+$|(^|\.)error=loading model$"),
    Rule(code="AI_MODEL_LOADING", exception=r"\.ModelNotReadyException$"),
    Rule(
        code="AI_ENGINE_CRASHED",
        exception=either(
            r"\.(AcceleratorError|DistBackendError|EngineDeadError|AsyncEngineDeadError|MQEngineDeadError",
            r"EngineGenerateError|RayActorError|ActorDiedError)$",
        ),
    ),
    Rule(
        code="AI_ENGINE_CRASHED",
        message=either(
            r"engine ?core",
            r"engine (process|loop)? ?(\(pid[^)]*\) )?(is |has |was )?(dead|died|not running|encountered)",
            r"EngineDead|background loop (is stopped|has errored)|CUDA error|cudaError|NCCL|device-side assert",
            r"illegal memory access|XID \d+|ECC error|HIP error|ROCm error",
            r"(model|llama) runner .{0,40}(stopped|terminated|crashed)",
            r"runner process (no longer running|has terminated)|signal: (aborted|killed|segmentation)",
            r"segmentation fault|core dumped|/completion\"?: EOF|error was encountered while running the model",
            r"GGML_ASSERT|watchdog caught collective|llama_decode|failed to decode|worker .{0,30}died unexpectedly",
        ),
        http_status="none, 2xx, 4xx, 5xx",
    ),
)
