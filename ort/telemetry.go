package ort

import "os"

// telemetry is ONNX Runtime's own switch (docs/Privacy.md there). From 1.29 on its builds report sessions, with names and
// hashes of models, to its maker, unless this is 1: they look up a collector's name, and keep a device id and a database
// of events in the user's cache.
const telemetry = "ORT_DISABLE_TELEMETRY"

// DisableTelemetry keeps ONNX Runtime from reporting to its maker, in this process and in its children, unless the user
// has set ORT_DISABLE_TELEMETRY. Open calls it; a program whose children load the library by themselves calls it first.
func DisableTelemetry() {
	if _, isSet := os.LookupEnv(telemetry); !isSet {
		_ = os.Setenv(telemetry, "1") // it fails for a malformed name alone
	}
}
