"""The changes to `lean.js` that go with the smaller module, and those that make it usable here."""

from __future__ import annotations

import re

from bridge.toolchain.errors import ToolchainError

# Binary search in the symbol file: what `dlsym` answers before it looks among the exports.
_LOOKUP = """var leanSymbols;function leanSymbol(name){
if(!leanSymbols)leanSymbols=require("fs").readFileSync(__dirname+"/lean.sym");
var b=leanSymbols,n=b.readUInt32LE(0),names=4+12*n,key=Buffer.from(name),low=0,high=n-1;
while(low<=high){var mid=(low+high)>>1,at=names+b.readUInt32LE(4+12*mid),
end=at+b.readUInt32LE(8+12*mid),order=b.compare(key,0,key.length,at,end);
if(order==0)return b.readUInt32LE(12+12*mid);if(order<0)low=mid+1;else high=mid-1}return 0}
"""

# A thread's calls of the system wait for the main thread, which looks each millisecond; to read a
# module takes nine. Those below are done in the thread itself, for files that are only read; such a
# file has its number plus a million. Anything else, and each error, is the main thread's.
OWN_CALLS = """var ownFiles=new Map();
function isOwnPath(path){return/^\\/(?!(dev|proc|sys)\\/)[^/]+\\//.test(path)}
var ownCalls={
stat64(path,buf){path=UTF8ToString(path);
const stat=isOwnPath(path)&&fs.statSync(path,{throwIfNoEntry:false});
if(stat)return SYSCALLS.writeStat(buf,stat)},
openat(dirfd,path,flags){path=UTF8ToString(path);
if(flags&~(524288|32768)||!isOwnPath(path))return;
const file=fs.openSync(path,"r");if(!fs.fstatSync(file).isFile()){fs.closeSync(file);return}
ownFiles.set(1e6+file,0);return 1e6+file},
fstat64(fd,buf){if(ownFiles.has(fd))return SYSCALLS.writeStat(buf,fs.fstatSync(fd-1e6))},
read(fd,iov,count,done){if(!ownFiles.has(fd))return;let total=0,at=ownFiles.get(fd);growMemViews();
for(let i=0;i<count;i++,iov+=8){const length=HEAPU32[iov+4>>2];
const n=fs.readSync(fd-1e6,HEAPU8,HEAPU32[iov>>2],length,at);at+=n;total+=n;if(n<length)break}
ownFiles.set(fd,at);HEAPU32[done>>2]=total;return 0},
seek(fd,offset,whence,now){if(!ownFiles.has(fd))return;
const from=[0,ownFiles.get(fd),whence==2?fs.fstatSync(fd-1e6).size:0][whence];
const at=from+Number(offset);if(!(at>=0))return 28;
growMemViews();ownFiles.set(fd,at);HEAP64[now>>3]=BigInt(at);return 0},
close(fd){if(ownFiles.delete(fd)){fs.closeSync(fd-1e6);return 0}}};
var ownCallOf;function ownCall(index,args){
ownCallOf??=new Map([[___syscall_stat64,"stat64"],[___syscall_openat,"openat"],
[___syscall_fstat64,"fstat64"],[_fd_read,"read"],[_fd_seek,"seek"],[_fd_close,"close"]].map(
([f,name])=>[proxiedFunctionTable.indexOf(f),ownCalls[name]]));
try{return ownCallOf.get(index)?.(...args)}catch{}}
"""

# The functions of `calls.wasm` (calls.py) take the place of those of the same names. `throwing`:
# C++ has thrown, and nothing has caught it yet. Whatever else is thrown, such as the end of a
# thread, is not caught there.
QUICK_CALLS = """var throwing=false;function quickCalls(imports){
const slow={caught(){if(!throwing)return 0;throwing=false;_setThrew(1,0);return 1}};
for(const[name,invoke]of Object.entries(imports))if(name.startsWith("invoke_"))
slow[name]=(...args)=>{const result=invoke(...args);throwing=false;return result};
const calls=new WebAssembly.Module(require("fs").readFileSync(__dirname+"/calls.wasm"));
Object.assign(imports,new WebAssembly.Instance(calls,{env:slow}).exports)}
"""

_PROXY = "proxyToMainThread=(funcIndex,emAsmAddr,sync,...callArgs)=>{"

_DLSYM = "__dlsym_js=(handle,symbol,symbolIndex)=>{symbol=UTF8ToString(symbol);"
_MOUNTS = 'FS.mount(NODEFS,{root:"/home"},"/home");FS.mount(NODEFS,{root:"/tmp"},"/tmp");'
_WORKER = '{workerData:"em-pthread",name:"em-pthread"}'

_ASSIGN_IMPORTS = "function getWasmImports(){assignWasmImports();"
# Where C++ throws for the first time, throws again, goes on after a destructor.
_FIRST = "exceptionLast=ptr;uncaughtExceptionCount++;"
_AGAIN = "uncaughtExceptionCount++}exceptionLast=ptr;"
_ON = "if(!exceptionLast){exceptionLast=ptr}"
_TELL, _THROW = "throwing=true;", "throw exceptionLast}"

_TTY_READ = (
    "get_char(stream.tty)}catch(e){throw new FS.ErrnoError(29)}"
    "if(result===undefined&&bytesRead===0){throw new FS.ErrnoError(6)}"
    "if(result===null||result===undefined)break;bytesRead++;buffer[offset+i]=result"
)

# (what for, text that occurs once, its replacement)
PATCHES = (
    ("look symbols up in the symbol file", _DLSYM,
     _DLSYM + "{var found=leanSymbol(symbol);if(found)return found}"),
    ("start one worker thread, not four", "var pthreadPoolSize=4;", "var pthreadPoolSize=1;"),
    ("read files in the thread that asks", _PROXY,
     _PROXY + "if(!emAsmAddr){var own=ownCall(funcIndex,callArgs);if(own!==undefined)return own}"),
    ("keep calls that may throw in WebAssembly", _ASSIGN_IMPORTS,
     _ASSIGN_IMPORTS + "quickCalls(wasmImports);"),
    ("tell them that C++ throws", _FIRST + _THROW, _FIRST + _TELL + _THROW),
    ("tell them that it throws again", _AGAIN + _THROW, _AGAIN + _TELL + _THROW),
    ("tell them that it goes on throwing", _ON + _THROW, _ON + _TELL + _THROW),
    ("tell them that it jumps", "throw Infinity", _TELL + "throw Infinity"),
    ("let a read of standard input wait", "process.stdin.fd", "0"),
    ("let a read of a pipe end with the line, not when the reader's buffer is full", _TTY_READ,
     _TTY_READ + ";if(result===10)break"),
    ("deep terms need a deeper stack than a worker's 4 MB", _WORKER,
     _WORKER[:-1] + ",resourceLimits:{stackSizeMb:256,maxOldGenerationSizeMb:4096}}"),
    ("see every folder of the machine, not /home and /tmp alone; pass the environment on", _MOUNTS,
     'Object.assign(ENV,process.env);for(const d of require("fs").readdirSync("/",'
     '{withFileTypes:true}))if(d.isDirectory()&&!["dev","proc","sys"].includes(d.name)){'
     'const r="/"+d.name;try{FS.mkdir(r)}catch{}FS.mount(NODEFS,{root:r},r)}'),
)  # fmt: skip

_ASSIGN = "function assignWasmExports(wasmExports){"


class Glue:
    """`lean.js` in its parts: the text before the 200,000 variables, their names, the assignments
    of exports to them, and the rest."""

    def __init__(self, text: str) -> None:
        start = text.find(_ASSIGN)
        variables = re.search(r"var (_[A-Za-z0-9_$]+,){200,}", text[: max(start, 0)])
        if start < 0 or variables is None:
            raise ToolchainError("lean.js is not laid out as expected (no table of exports)")
        end = text.index("}", start)
        self.head = text[: variables.start()]
        self.variables = text[variables.start() + 4 : start].rstrip(";").split(",")
        self.assignments = text[start + len(_ASSIGN) : end].split(";")
        self.tail = text[end + 1 :]
        identifiers = re.findall(r"[A-Za-z_$][A-Za-z0-9_$]*", self.head + self.tail)
        self.used = set(identifiers)

    def shrunk(self, kept: frozenset[str]) -> str:
        """The text with only the variables that it uses, and with the patches.

        Raises ToolchainError where a patch does not apply or a kept variable has no export.
        """
        assignments, assigned = [], set()
        for assignment in filter(None, self.assignments):
            # name=wasmExports["export"], or with several names in a chain
            *targets, source = assignment.split("=")
            if targets[0] in self.used or "wasmTable" in targets:
                export = re.match(r'wasmExports\["([^"]+)"\]', source)
                if export is None or export[1] not in kept:
                    raise ToolchainError(f"lean.js needs an export that is gone: {assignment[:80]}")
                assignments.append(assignment)
                assigned.update(targets)
        names = [name for name in self.variables if name in assigned or name in self.used]
        variables = f"var {','.join(names)};"
        function = f"{_ASSIGN}{';'.join(assignments)}}}"
        text = f"{_LOOKUP}{OWN_CALLS}{QUICK_CALLS}{self.head}{variables}{function}{self.tail}"
        for purpose, old, new in PATCHES:
            if text.count(old) != 1:
                raise ToolchainError(f"lean.js is not laid out as expected ({purpose})")
            text = text.replace(old, new)
        return text
