package grpcapi

import (
	"tuner/engine"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Names of data types on the wire, and the types by name. Both are looked up for each tensor.
var (
	typeNames = namesOfTypes()
	typesOf   = typesOfNames()
)

func namesOfTypes() []string {
	names := make([]string, len(configpb.DataType_name))
	for number := range configpb.DataType_name {
		names[number] = modelconfig.WireName(configpb.DataType(number))
	}
	names[configpb.DataType_TYPE_INVALID] = "<invalid>" // as in error messages
	return names
}

func typesOfNames() map[string]engine.DataType {
	types := map[string]engine.DataType{}
	for number, name := range namesOfTypes() {
		if t := engine.DataType(number); t != configpb.DataType_TYPE_INVALID {
			types[name] = t
		}
	}
	return types
}

// nameOf returns the name of a type.
func nameOf(t engine.DataType) string {
	return typeNames[t]
}
