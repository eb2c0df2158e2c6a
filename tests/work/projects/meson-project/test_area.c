int area(int a, int b);
int main(void)
{
    return area(6, 7) == 42 ? 0 : 1;
}
