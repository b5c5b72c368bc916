/* symbols.cpp: what the program's symbol table knows about kernels.
 *
 * A kernel is only an address to the launch; its name, and the static
 * `__shared__` arrays that must be poisoned before each block, stand in .symtab
 * of the executable: `__shared__ float part[32]` in `void k(int)` is a TLS
 * symbol _ZZ1kiE4part whose value is its offset in the thread's TLS block. A
 * stripped program still runs, with kernels named by address and no poison.
 */
#include "sim.h"
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sim
{

struct Symbols {
    std::map<uintptr_t, std::string> functions;  // by run-time address, mangled
    struct Local {
        std::string name;
        Range range;
    };
    std::vector<Local> locals;  // thread_local variables of functions
};

/* The main program comes first. */
static int main_program(dl_phdr_info *info, size_t, void *to)
{
    *(dl_phdr_info *)to = *info;
    return 1;
}

char *tls_block()
{
    static thread_local char *block;
    dl_phdr_info info = {};
    if (!block && dl_iterate_phdr(main_program, &info))
        block = (char *)info.dlpi_tls_data;
    return block;
}

static void read_table(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *table,
                       uintptr_t base, Symbols *to)
{
    const Elf64_Sym *symbol = (const Elf64_Sym *)(file + table->sh_offset);
    const char *names = file + sections[table->sh_link].sh_offset;
    for (size_t n = table->sh_size / sizeof *symbol; n--; symbol++) {
        const char *name = names + symbol->st_name;
        int type = ELF64_ST_TYPE(symbol->st_info);
        if (type == STT_FUNC && symbol->st_shndx != SHN_UNDEF)
            to->functions[base + symbol->st_value] = name;
        else if (type == STT_TLS && !strncmp(name, "_ZZ", 3) && strncmp(name, "_ZZN3sim", 8))
            to->locals.push_back({name, {symbol->st_value, symbol->st_size}});
    }
}

static Symbols *read_symbols()
{
    Symbols *to = new Symbols;
    dl_phdr_info info = {};
    struct stat stat;
    int fd = ::open("/proc/self/exe", O_RDONLY);
    if (fd < 0 || fstat(fd, &stat) || !dl_iterate_phdr(main_program, &info))
        return to;
    char *file = (char *)mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (file == MAP_FAILED)
        return to;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            read_table(file, sections, &sections[i], info.dlpi_addr, to);
    munmap(file, (size_t)stat.st_size);
    return to;
}

static const Symbols &symbols()
{
    static const Symbols *table = read_symbols();
    return *table;
}

/* "void k<int>(float*)" -> "k<int>" */
static std::string shortened(const std::string &text)
{
    size_t from = text.rfind("void ", 0) == 0 ? 5 : 0, depth = 0, i = from;
    for (; i < text.size(); i++) {
        depth += text[i] == '<';
        depth -= text[i] == '>' && depth;
        if (text[i] == '(' && !depth && i > from)
            break;
    }
    return text.substr(from, i - from);
}

std::string symbol_name(uintptr_t function)
{
    auto at = symbols().functions.find(function);
    if (at == symbols().functions.end()) {
        char text[32];
        snprintf(text, sizeof text, "%#lx", (unsigned long)function);
        return text;
    }
    int status;
    char *plain = abi::__cxa_demangle(at->second.c_str(), NULL, NULL, &status);
    std::string name = plain ? shortened(plain) : at->second;
    free(plain);
    return name;
}

static bool belongs(const std::string &local, uintptr_t function)
{
    auto at = symbols().functions.find(function);
    if (at == symbols().functions.end() || at->second.rfind("_Z", 0))
        return false;
    return local.rfind("_ZZ" + at->second.substr(2) + "E", 0) == 0;
}

/* Those of the kernel and of the device functions that it may call: all that do
 * not belong to another kernel. */
std::vector<Range> shared_arrays(uintptr_t kernel, const std::vector<uintptr_t> &others)
{
    std::vector<Range> found;
    for (const Symbols::Local &local : symbols().locals) {
        bool foreign = false;
        for (uintptr_t other : others)
            foreign = foreign || (other != kernel && belongs(local.name, other));
        if (!foreign)
            found.push_back(local.range);
    }
    return found;
}

}  // namespace sim
