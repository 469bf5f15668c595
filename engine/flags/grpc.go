package flags

import (
	"time"

	"github.com/spf13/pflag"

	"tuner/engine/grpcapi"
	"tuner/engine/grpcapi/compression"
	"tuner/internal/exit"
)

// rpcOptions are the other options of the gRPC front end.
type rpcOptions struct {
	restricted  []string
	compression string
	keepalive   keepaliveOptions
}

// keepaliveOptions are the times for checking and ending connections, in milliseconds.
type keepaliveOptions struct {
	time, timeout, pingInterval uint32
	permitWithoutCalls          bool
	age, grace                  uint32 // 0: no limit
}

func (o *rpcOptions) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.restricted, "grpc-restricted-protocol", nil, "API[,API...]:KEY=VALUE: these APIs need the metadata triton-grpc-protocol-KEY")
	flags.StringVar(&o.compression, "grpc-infer-response-compression-level", "none", "compression of answers to inferences: none, low, medium or high")
	k := &o.keepalive
	flags.Uint32Var(&k.time, "grpc-keepalive-time", 7200000, "milliseconds of silence after which a client is pinged")
	flags.Uint32Var(&k.timeout, "grpc-keepalive-timeout", 20000, "milliseconds to wait for the answer to a ping")
	boolFlag(flags, &k.permitWithoutCalls, "grpc-keepalive-permit-without-calls", false, "clients may ping while they have no call")
	flags.Uint32Var(&k.pingInterval, "grpc-http2-min-recv-ping-interval-without-data", 300000, "least milliseconds between the pings of a client")
	flags.Uint32Var(&k.age, "grpc-max-connection-age", 0, "most milliseconds of a connection (default: no limit)")
	flags.Uint32Var(&k.grace, "grpc-max-connection-age-grace", 0, "most milliseconds that the calls of such a connection have to end (default: no limit)")
}

// options converts the options for the front end.
func (o *rpcOptions) options() (grpcapi.Options, error) {
	levels := map[string]compression.Level{
		"none": compression.None, "low": compression.Low, "medium": compression.Medium, "high": compression.High,
	}
	level, known := levels[o.compression]
	if !known {
		return grpcapi.Options{}, exit.Usagef("--grpc-infer-response-compression-level=%q: use none, low, medium or high", o.compression)
	}
	restricted, err := parseRestrictions("grpc-restricted-protocol", o.restricted, "triton-grpc-protocol-")
	k := o.keepalive
	return grpcapi.Options{Restricted: restricted, Compression: level, Keepalive: grpcapi.Keepalive{
		Time: milliseconds(k.time), Timeout: milliseconds(k.timeout), PermitWithoutCalls: k.permitWithoutCalls,
		MinPingInterval: milliseconds(k.pingInterval), MaxAge: milliseconds(k.age), MaxAgeGrace: milliseconds(k.grace),
	}}, err
}

func milliseconds(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }
