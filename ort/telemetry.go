package ort

import "tuner/internal/telemetry"

// DisableTelemetry stops ONNX Runtime from reporting to its maker, in this process and in its
// children, unless the user has set ORT_DISABLE_TELEMETRY. Open calls it. A program whose children
// load the library themselves calls it first.
func DisableTelemetry() { telemetry.Disable() }
