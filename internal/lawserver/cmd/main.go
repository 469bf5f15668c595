// Command lawserver serves inferences by a known law of service times, see package lawserver.
package main

import (
	"tuner/internal/bench/program"
	"tuner/internal/lawserver"
)

func main() { program.Main("lawserver", lawserver.Run) }
