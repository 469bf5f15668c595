package ort

// #include "shim.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// ErrorCode is ONNX Runtime's OrtErrorCode.
type ErrorCode int

// The codes that callers distinguish.
const (
	CodeFail            ErrorCode = 1
	CodeInvalidArgument ErrorCode = 2
	CodeNoSuchFile      ErrorCode = 3
	CodeInvalidProtobuf ErrorCode = 7
	CodeNotImplemented  ErrorCode = 9
)

// Error is a failure that ONNX Runtime reports, with its code and its unchanged message.
type Error struct {
	Code    ErrorCode
	Message string
}

// Error formats the failure as Triton's onnxruntime backend does.
func (e *Error) Error() string { return fmt.Sprintf("onnx runtime error %d: %s", e.Code, e.Message) }

// KindError means that an input or output of a model is not a tensor. Only tensors can be served.
type KindError struct {
	Name string
	Kind string // ONNX Runtime's name, such as ONNX_TYPE_SEQUENCE
}

// Error formats the failure as Triton's onnxruntime backend does.
func (e *KindError) Error() string {
	return fmt.Sprintf("Unsupported ONNX Type '%s' for I/O '%s', expected 'ONNX_TYPE_TENSOR'.", e.Kind, e.Name)
}

// check turns an OrtStatus into an error and releases it. nil is success.
func (t table) check(status unsafe.Pointer) error {
	if status == nil {
		return nil
	}
	defer C.api_status_end(t.api, status)
	return &Error{
		Code:    ErrorCode(C.api_status_code(t.api, status)),
		Message: strings.TrimSpace(C.GoString(C.api_status_message(t.api, status))),
	}
}
