package engine

import (
	"tuner/engine/request"
	"tuner/engine/served"
)

// What front ends and backends need of a request, under one roof.
type (
	// DataType is the type of a tensor's elements.
	DataType = request.DataType
	// Tensor is an input or output of a request.
	Tensor = request.Tensor
	// Request is a request for one inference.
	Request = request.Request
	// Response is the answer to a Request.
	Response = served.Response
	// Pending is a request that has been accepted.
	Pending = served.Pending
)
