"""One instance of a Model Exchange FMU, version 2.0 or 3.0, through FMPy."""

from __future__ import annotations

import ctypes
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from daedal.errors import DaedalError, InvalidFileError, InvalidProblemError

_MOST_ITERATIONS = 100  # maximum number of iterations over discrete states at an event
_DISCARDED = 2  # status of FMI: values cannot be computed


def fmpy_module() -> Any:
    """Import the package FMPy."""
    try:
        import fmpy
    except ImportError:
        raise ImportError("import_fmu needs the package FMPy: pip install 'daedal[fmu]'") from None
    return fmpy


def read_description(path: Path) -> Any:
    """Read the model description of a file; raise an error unless it is a Model Exchange FMU 2.0 or 3.0."""
    fmpy = fmpy_module()
    if not path.is_file():
        raise InvalidFileError(f"{path} does not exist")
    try:
        found = fmpy.read_model_description(str(path))
    except Exception as error:  # FMPy may raise any exception for a file that it cannot read
        raise InvalidFileError(f"{path} cannot be read as an FMU: {error}") from error
    if found.fmiVersion not in ("2.0", "3.0"):
        raise InvalidProblemError(f"{path} is an FMU of version {found.fmiVersion}; only 2.0 and 3.0 can be imported")
    if found.modelExchange is None:
        raise InvalidProblemError(
            f"{path} has no Model Exchange interface: a Co-Simulation FMU has its own integrator. Remedy: export it "
            "for Model Exchange (kind='me')"
        )
    return found


def has_directional_derivatives(path: Path) -> bool:
    """Whether a Model Exchange FMU has directional derivatives; FMPy does not read this attribute of FMI 3.0."""
    with zipfile.ZipFile(path) as archive:
        element = ET.fromstring(archive.read("modelDescription.xml")).find("ModelExchange")
    names = ("providesDirectionalDerivative", "providesDirectionalDerivatives")
    return element is not None and any(element.get(name) in ("true", "1") for name in names)


class FMUInstance:
    """A loaded FMU that can be restarted, evaluated, and taken through events.

    Parameters
    ----------
    path : pathlib.Path
    description : ModelDescription
        The model description read by FMPy.
    """

    def __init__(self, path: Path, description: Any):
        fmpy = fmpy_module()
        self.is_version_2 = description.fmiVersion == "2.0"
        self._folder = fmpy.extract(str(path))
        common: dict[str, Any] = {
            "guid": description.guid if self.is_version_2 else description.instantiationToken,
            "unzipDirectory": self._folder,
            "modelIdentifier": description.modelExchange.modelIdentifier,
            "instanceName": path.stem,
        }
        self._fmu: Any = None
        self._said = list[str]()  # messages of the FMU
        try:
            if self.is_version_2:
                self._fmu = fmpy.fmi2.FMU2Model(**common)
                self._fmu.instantiate(callbacks=callbacks(fmpy, self._said))
            else:
                self._fmu = fmpy.fmi3.FMU3Model(**common)
                said = self._said
                self._fmu.instantiate(logMessage=lambda environment, status, category, text: said.append(_text(text)))
        except Exception as error:
            self._fmu = None
            self.close()
            raise InvalidProblemError(
                f"{path} cannot be loaded: {error}. Remedy: use an FMU with a binary for this platform; one with "
                "sources alone can be compiled by fmpy.util.compile_platform_binary(path)"
            ) from error
        derivatives = [unknown.variable for unknown in description.derivatives]
        if any(variable.dimensions for variable in derivatives):
            self.close()
            raise InvalidProblemError(
                f"{path} has arrays as states; only scalar states can be imported. Remedy: export it with one "
                "variable for each entry"
            )
        self.rate_references = [variable.valueReference for variable in derivatives]
        self.state_references = [variable.derivative.valueReference for variable in derivatives]
        self.n = len(derivatives)
        self.n_indicators = int(description.numberOfEventIndicators or 0)
        if not self.is_version_2:
            self.n_indicators = (
                self._fmu.getNumberOfEventIndicators() if self._has_count else len(description.eventIndicators)
            )
        self._x, self._dx = np.zeros(self.n), np.zeros(self.n)
        self._z = np.zeros(self.n_indicators)
        self.next_event = np.inf
        self._is_used = False

    @property
    def _has_count(self) -> bool:
        return hasattr(self._fmu, "getNumberOfEventIndicators")

    def restart(self, t0: float, values: Mapping[int, float], states: Any = None) -> np.ndarray:
        """Initialise at `t0` with values of parameters and inputs by reference, and start values of the states."""
        if self._is_used:
            self._call(self._fmu.reset)
        self._is_used = True
        self.set_numbers(values)
        if states is not None and self.n:
            self.set_numbers(dict(zip(self.state_references, states, strict=True)))
        if self.is_version_2:
            self._call(self._fmu.setupExperiment, startTime=t0)
            self._call(self._fmu.enterInitializationMode)
        else:
            self._call(self._fmu.enterInitializationMode, startTime=t0)
        self._call(self._fmu.exitInitializationMode)
        return self.update_discrete(t0)

    def set_numbers(self, values: Mapping[int, float]) -> None:
        """Set variables of floating-point type by reference."""
        if values:
            setter = self._fmu.setReal if self.is_version_2 else self._fmu.setFloat64
            self._call(setter, list(values), [float(x) for x in values.values()])

    def numbers(self, references: Sequence[int]) -> np.ndarray:
        """Values of variables by reference."""
        getter = self._fmu.getReal if self.is_version_2 else self._fmu.getFloat64
        return np.array(self._call(getter, list(references)), dtype=float)

    def place(self, t: float, y: np.ndarray) -> None:
        """Set time and states."""
        self._x[:] = y
        self._call(self._fmu.setTime, float(t))
        if self.n:
            self._call(self._fmu.setContinuousStates, _pointer(self._x), self.n)

    def derivatives(self) -> np.ndarray:
        """Derivatives of the states at the current values."""
        get = self._fmu.getDerivatives if self.is_version_2 else self._fmu.getContinuousStateDerivatives
        return self._evaluated(get, self._dx)

    def indicators(self) -> np.ndarray:
        """Event indicators at the current values."""
        return self._evaluated(self._fmu.getEventIndicators, self._z)

    def _evaluated(self, get: Any, values: np.ndarray) -> np.ndarray:
        """Evaluate at the current values; NaN if that is impossible."""
        try:
            if values.size:
                self._call(get, _pointer(values), values.size)
        except _Discarded:
            return np.full(values.size, np.nan)
        return values.copy()

    def jacobian(self) -> np.ndarray:
        """The derivatives of the rates with respect to the states, from directional derivatives."""
        columns = [
            self._call(self._fmu.getDirectionalDerivative, self.rate_references, [reference], [1.0])
            for reference in self.state_references
        ]
        return np.array(columns, dtype=float).reshape(self.n, self.n).T

    def event(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the states after an event at (t, y)."""
        self.place(t, y)
        self._call(self._fmu.enterEventMode)
        return self.update_discrete(t)

    def update_discrete(self, t: float) -> np.ndarray:
        """Iterate over the discrete states, and return the continuous ones."""
        update = self._fmu.newDiscreteStates if self.is_version_2 else self._fmu.updateDiscreteStates
        for _ in range(_MOST_ITERATIONS):
            again, ends, _, _, has_next, following = self._call(update)
            if ends:
                raise DaedalError(f"the FMU ends the simulation at t = {t:g}")
            if not again:
                break
        else:
            raise DaedalError(
                f"the discrete states at the event at t = {t:g} have not converged in {_MOST_ITERATIONS} iterations"
            )
        self.next_event = float(following) if has_next else np.inf
        self._call(self._fmu.enterContinuousTimeMode)
        if self.n:
            self._call(self._fmu.getContinuousStates, _pointer(self._x), self.n)
        return self._x.copy()

    def _call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        self._said.clear()
        try:
            return function(*arguments, **options)
        except Exception as error:  # FMPy's exception for an error status
            kind = _Discarded if getattr(error, "status", None) == _DISCARDED else DaedalError
            raise kind(" ".join(["the FMU reports an error:", f"{error}", *self._said])) from error

    def close(self) -> None:
        """Free the instance and remove its files."""
        fmu, self._fmu = self._fmu, None
        if fmu is not None:
            try:
                fmu.freeInstance()
            except Exception:  # the library is unloaded at the end of the process
                return
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __del__(self) -> None:
        self.close()


class _Discarded(DaedalError):
    """The FMU cannot compute the requested values."""


def _text(text: Any) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


def callbacks(fmpy: Any, said: list[str]) -> Any:
    """Callback functions of FMI 2.0; the logger appends messages to `said`."""
    own, default = fmpy.fmi2.fmi2CallbackFunctions(), fmpy.fmi2.defaultCallbacks
    own.allocateMemory, own.freeMemory = default.allocateMemory, default.freeMemory
    own.logger = fmpy.fmi2.fmi2CallbackLoggerTYPE(
        lambda environment, name, status, category, text: said.append(_text(text))
    )
    try:
        from fmpy.logging import addLoggerProxy
    except Exception:  # FMPy has no library for formatting messages on this platform
        return own
    addLoggerProxy(ctypes.byref(own))
    return own


def _pointer(array: np.ndarray) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
