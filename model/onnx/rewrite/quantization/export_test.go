package quantization

// RaiseOpset is raiseOpset.
var RaiseOpset = raiseOpset
