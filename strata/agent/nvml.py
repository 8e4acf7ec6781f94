"""NVIDIA's management library (NVML) as every driver brings it, by ctypes: the one door to what is known of GPUs."""

import ctypes
import math
from typing import Any

from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["Nvml"]

_LIBRARY = "libnvidia-ml.so.1"
_UUID_BYTES = 96
_CORE_TEMPERATURE = 0  # NVML_TEMPERATURE_GPU


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Nvml:
    """The cards of this host. Without the library, its driver or the right to use them there are none."""

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None
        try:
            library = ctypes.CDLL(_LIBRARY)
            if library.nvmlInit_v2() == 0:
                self._library = library
        except (OSError, AttributeError):
            return

    def uuids(self) -> list[str]:
        """One per card, in the order of the PCI bus; empty for a card that does not answer."""
        count = ctypes.c_uint(0)
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return [self._uuid(index) for index in range(count.value)]

    def _uuid(self, index: int) -> str:
        text = ctypes.create_string_buffer(_UUID_BYTES)
        told = self._call("nvmlDeviceGetUUID", self._device(index), text, _UUID_BYTES)
        return text.value.decode(errors="replace") if told else ""

    def usage(self, index: int) -> pb.GpuUsage:
        """What a card does. NaN, and a size of 0, is what it does not tell: one may have fallen off its bus."""
        device, memory, rates, degrees = self._device(index), _Memory(), _Rates(), ctypes.c_uint(0)
        self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        used = self._call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(rates))
        warm = self._call("nvmlDeviceGetTemperature", device, _CORE_TEMPERATURE, ctypes.byref(degrees))
        return pb.GpuUsage(
            gpu_id=index,
            utilization_percent=rates.gpu if used else math.nan,
            memory_used_bytes=memory.used,
            memory_total_bytes=memory.total,
            temperature_celsius=degrees.value if warm else math.nan,
        )

    def _device(self, index: int) -> ctypes.c_void_p:
        """Its handle; one that NVML refuses in every call where the card does not answer."""
        device = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
        return device

    def _call(self, function: str, *arguments: Any) -> bool:
        """Whether the driver answered. It may refuse, be too old to be asked this, or not be there at all."""
        called = getattr(self._library, function, None)
        return called is not None and called(*arguments) == 0
