// Package datatype has the names of data types in gRPC messages. It reads no tensor.
package datatype

import (
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Names on the wire, and the types by name. Both are looked up for each tensor.
var (
	names = namesOfTypes()
	types = typesOfNames()
)

func namesOfTypes() []string {
	names := make([]string, len(configpb.DataType_name))
	for number := range configpb.DataType_name {
		names[number] = modelconfig.WireName(configpb.DataType(number))
	}
	names[configpb.DataType_TYPE_INVALID] = "<invalid>" // as in error messages
	return names
}

func typesOfNames() map[string]configpb.DataType {
	types := map[string]configpb.DataType{}
	for number, name := range namesOfTypes() {
		if t := configpb.DataType(number); t != configpb.DataType_TYPE_INVALID {
			types[name] = t
		}
	}
	return types
}

// Name returns the name of a type.
func Name(t configpb.DataType) string { return names[t] }

// Of returns the type with a name, TYPE_INVALID for an unknown one.
func Of(name []byte) configpb.DataType { return types[string(name)] }
