# Writes the models of this folder: python3 models.py FOLDER (needs the packages onnx and numpy).
import sys, numpy as np, onnx
from onnx import helper as h, TensorProto as T, numpy_helper as nh
out=sys.argv[1]
def save(name, nodes, ins, outs, inits=(), external=False, opset=17):
    g=h.make_graph(nodes,name,ins,outs,list(inits))
    m=h.make_model(g,opset_imports=[h.make_opsetid("",opset)],ir_version=8); m.producer_name=""
    onnx.checker.check_model(m)
    if external:
        onnx.save_model(m,f"{out}/{name}.onnx",save_as_external_data=True,location=f"{name}.bin",size_threshold=0,convert_attribute=False)
    else: onnx.save(m,f"{out}/{name}.onnx")
vi=h.make_tensor_value_info
# add_sub: sum, difference of [batch,4] float
save("add_sub",[h.make_node("Add",["x","y"],["sum"]),h.make_node("Sub",["x","y"],["diff"])],
  [vi("x",T.FLOAT,["n",4]),vi("y",T.FLOAT,["n",4])],[vi("sum",T.FLOAT,["n",4]),vi("diff",T.FLOAT,["m",4])])
# identity of each type, any shape of rank 1
types=dict(bool=T.BOOL,uint8=T.UINT8,uint16=T.UINT16,uint32=T.UINT32,uint64=T.UINT64,int8=T.INT8,int16=T.INT16,int32=T.INT32,int64=T.INT64,fp16=T.FLOAT16,bf16=T.BFLOAT16,fp32=T.FLOAT,fp64=T.DOUBLE,string=T.STRING)
save("identities",[h.make_node("Identity",[k],[k+"_out"]) for k in types],[vi(k,t,["n"]) for k,t in types.items()],[vi(k+"_out",t,["n"]) for k,t in types.items()])
save("scalar",[h.make_node("Neg",["x"],["y"])],[vi("x",T.FLOAT,[])],[vi("y",T.FLOAT,[])])
save("external",[h.make_node("Add",["x","w"],["y"])],[vi("x",T.FLOAT,["n",4])],[vi("y",T.FLOAT,["n",4])],[nh.from_array(np.arange(1,5,dtype=np.float32),"w")],external=True)
# passed: its input x is an output as well
save("passed",[h.make_node("Neg",["x"],["y"])],[vi("x",T.FLOAT,["n",4])],[vi("x",T.FLOAT,["n",4]),vi("y",T.FLOAT,["n",4])])
seq=h.make_tensor_sequence_value_info("s",T.FLOAT,["n"])
save("sequence",[h.make_node("SequenceLength",["s"],["length"])],[seq],[vi("length",T.INT64,[])])
save("gather",[h.make_node("Gather",["w","i"],["y"])],[vi("i",T.INT64,["n"])],[vi("y",T.FLOAT,["n",2])],[nh.from_array(np.arange(6,dtype=np.float32).reshape(3,2),"w")])
# loops x times: never ends in the life of a test when x is large
body=h.make_graph([h.make_node("Identity",["c"],["c_out"]),h.make_node("Add",["v","one"],["v_out"])],"body",
  [vi("i",T.INT64,[]),vi("c",T.BOOL,[]),vi("v",T.FLOAT,[])],[vi("c_out",T.BOOL,[]),vi("v_out",T.FLOAT,[])],[nh.from_array(np.float32(1),"one")])
save("count",[h.make_node("Loop",["times","","zero"],["y"],body=body)],[vi("times",T.INT64,[])],[vi("y",T.FLOAT,[])],[nh.from_array(np.float32(0),"zero")])
