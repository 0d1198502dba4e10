"""Every setting of the service, from the environment: `EVENKEEL_` and the name in capitals."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read once at start and passed in; frozen."""

    model_config = SettingsConfigDict(env_prefix="EVENKEEL_", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    artifacts: Path = Field(Path("artifacts"), description="folder of the models to serve")
    state_key: SecretStr | None = Field(
        None,
        min_length=16,
        description="secret that signs state tokens; replicas that share it accept each other's. "
        "Without one, tokens last until the service restarts",
    )
    provider: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where models run; auto takes CUDA if onnxruntime has it"
    )
    runner: Literal["auto", "scan", "slots"] = Field(
        "auto", description="scan runs a chunk in one call, slots step by step; auto fits provider"
    )
    threads: int = Field(
        0, ge=0, description="threads of a model's session; 0 takes the number that is fastest here"
    )
    slots: int = Field(32, ge=1, le=1024, description="requests a model works on at once")
    queue_size: int = Field(256, ge=1, description="requests that may wait; more get a 503")
    chunk_steps: int = Field(32, ge=1, le=4096, description="steps between two looks at the queue")
    first_chunk_steps: int = Field(
        8, ge=1, le=4096, description="steps before a request's first bytes go out"
    )
    max_tokens: int = Field(65536, ge=1, description="largest max_tokens a request may ask for")
    max_request_steps: int = Field(
        1 << 21,
        ge=1,
        description="largest number of bytes one request may have read and written, "
        "all its choices together",
    )
    max_body_bytes: int = Field(1 << 20, ge=1024, description="largest request body")
    drain_timeout_s: int = Field(
        20, ge=0, description="seconds that running requests get to finish when the service stops"
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="host names to answer to, as a JSON list; none means any, or those of the "
        "loopback interface for a service that listens there",
    )
    allowed_origins: tuple[str, ...] = Field(
        (), description="origins whose pages may use the service too, as a JSON list"
    )
    shutdown_delay_s: float = Field(
        0.0,
        ge=0,
        description="seconds of accepting on after SIGTERM, not ready any more, until "
        "load balancers have noticed",
    )
    stall_timeout_s: float = Field(
        30.0, gt=0, description="seconds a run may take before /livez says that it is stuck"
    )
    allow_unproved: bool = Field(
        False, description="serve models whose parity report is missing or red all the same"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="logging")
