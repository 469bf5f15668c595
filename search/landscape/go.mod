module tuner/search/landscape

go 1.26.0

// The baselines seed the random numbers that goptuna draws from.
godebug randseednop=0

replace tuner => ../..

require (
	github.com/c-bata/goptuna v0.9.0
	gonum.org/v1/gonum v0.17.0
	tuner v0.0.0-00010101000000-000000000000
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
)
