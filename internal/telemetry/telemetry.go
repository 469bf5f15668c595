// Package telemetry has the switch that stops ONNX Runtime from sending reports to its maker. The
// processes that tuner starts, its exported deployments and its programs all set it.
package telemetry

import "os"

// Variable is the environment variable, and Off the value that stops the reports (docs/Privacy.md
// of ONNX Runtime). From 1.29 on, its builds for Linux report sessions, with names and hashes of
// models. They look up a collector's name, and keep a device id and a database of events in the
// user's cache. Earlier builds ignore the variable.
const (
	Variable = "ORT_DISABLE_TELEMETRY"
	Off      = "1"
)

// Disable stops the reports of this process and its children, unless the user has set the variable.
func Disable() {
	if _, isSet := os.LookupEnv(Variable); !isSet {
		_ = os.Setenv(Variable, Off) // fails only for a malformed name
	}
}
