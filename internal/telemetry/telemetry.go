// Package telemetry knows the switch by which ONNX Runtime is kept from reporting to its maker. The processes that tuner
// starts, the deployments that it exports and the programs that it writes all set it.
package telemetry

import "os"

// Variable is the environment variable, and Off its value that switches the reports off (docs/Privacy.md of ONNX Runtime). From
// 1.29 on its builds for Linux report sessions, with names and hashes of models: they look up a collector's name, and keep a
// device id and a database of events in the user's cache. Earlier ones ignore it.
const (
	Variable = "ORT_DISABLE_TELEMETRY"
	Off      = "1"
)

// Disable switches the reports off in this process and in its children, unless the user has set the variable.
func Disable() {
	if _, isSet := os.LookupEnv(Variable); !isSet {
		_ = os.Setenv(Variable, Off) // it fails for a malformed name alone
	}
}
