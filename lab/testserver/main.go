// Testserver serves inferences by a known law of service times: package testserver as a program.
//
//	go -C lab run ./testserver -law exponential:20ms -servers 1 -http 127.0.0.1:8000
package main

import (
	"tuner/internal/testserver"
	"tuner/lab/program"
)

func main() { program.Main("testserver", testserver.Run) }
